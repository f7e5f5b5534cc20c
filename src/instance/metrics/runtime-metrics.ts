import type { RuntimeFacts } from "../../runtime/runtime-facts.ts";
import type { SampleSet } from "./sample-set.ts";

/** Metrics of the program itself; they stand where the original has those of Go's runtime, which this program has not. */
export function addRuntimeMetrics(samples: SampleSet, facts: RuntimeFacts): void {
  const add = (name: string, help: string, value: number) =>
    samples.add({ name: `nodejs_${name}`, help, type: "gauge" }, {}, value);
  add("eventloop_lag_seconds", "How much later than it could a callback ran", facts.eventLoopLagSeconds);
  add("heap_size_used_bytes", "Bytes of V8's heap that are in use", facts.heapUsedBytes);
  add("heap_size_total_bytes", "Bytes of V8's heap", facts.heapTotalBytes);
  add("active_resources_total", "Sockets, timers and the like that keep the process going", facts.activeResources);
}
