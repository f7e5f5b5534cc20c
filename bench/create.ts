import { createCluster } from "../test/e2e/support/cluster.ts";
import { type Bench, median, peerOrigin, report } from "./report.ts";

/** From `kubectl apply` of a Cluster to three healthy instances, images present. */
export const createBench: Bench = {
  about: "apply a three-instance Cluster until it is healthy",
  needsCluster: true,
  async run(runs) {
    const seconds: number[] = [];
    for (let run = 0; run < runs; run++) {
      const started = performance.now();
      const cluster = await createCluster(`bench-create-${run}`, { instances: 3 });
      try {
        await cluster.healthy(3, 300_000);
        seconds.push((performance.now() - started) / 1000);
      } finally {
        await cluster.remove();
      }
    }
    report({
      bench: "create",
      metric: "apply to three instances healthy",
      ours: median(seconds),
      peer: 61,
      unit: "s",
      context: { runs: seconds, peer: peerOrigin },
    });
  },
};
