import { getHeapStatistics } from "node:v8";

/** What a process tells of the JavaScript runtime it is. */
export interface RuntimeFacts {
  /** How much later than it could a callback runs just now, seconds. */
  eventLoopLagSeconds: number;
  heapUsedBytes: number;
  heapTotalBytes: number;
  /** Sockets, timers, requests and the like that keep the process going. */
  activeResources: number;
}

/** Reads them at the moment; nothing is measured in between. */
export async function readRuntimeFacts(): Promise<RuntimeFacts> {
  const asked = performance.now();
  await new Promise((resolve) => setImmediate(resolve));
  const { used_heap_size: heapUsedBytes, total_heap_size: heapTotalBytes } = getHeapStatistics();
  return {
    eventLoopLagSeconds: (performance.now() - asked) / 1_000,
    heapUsedBytes,
    heapTotalBytes,
    activeResources: process.getActiveResourcesInfo().length,
  };
}
