import { expect, test } from "vitest";
import { addRuntimeMetrics } from "../../../../src/instance/metrics/runtime-metrics.ts";
import { SampleSet } from "../../../../src/instance/metrics/sample-set.ts";

test("the program's own figures have names of their own, not those of another runtime", () => {
  const samples = new SampleSet();
  addRuntimeMetrics(samples, {
    eventLoopLagSeconds: 0.25,
    heapUsedBytes: 1_000,
    heapTotalBytes: 4_000,
    activeResources: 7,
  });
  const lines = samples.render().split("\n");
  expect(lines.filter((it) => it !== "" && !it.startsWith("#")).sort()).toEqual([
    "nodejs_active_resources_total 7",
    "nodejs_eventloop_lag_seconds 0.25",
    "nodejs_heap_size_total_bytes 4000",
    "nodejs_heap_size_used_bytes 1000",
  ]);
});
