import { createCluster, type TestCluster } from "../test/e2e/support/cluster.ts";
import { kubectl } from "../test/e2e/support/kubectl.ts";
import { waitFor } from "../test/e2e/support/wait.ts";
import { startWriter } from "../test/e2e/support/writer.ts";
import { type Bench, median, peerOrigin, report } from "./report.ts";

interface Fault {
  readonly about: string;
  readonly metric: string;
  readonly peer: number;
  /** Makes the fault and resolves when the cluster is on its way out of it. */
  make(cluster: TestCluster): Promise<void>;
}

const faults: Readonly<Record<string, Fault>> = {
  failover: {
    about: "write gap when the primary's pod is force-deleted",
    metric: "longest write gap, primary pod force-deleted",
    peer: 2.9,
    make: async (cluster) => {
      const before = await cluster.primary();
      await kubectl(["delete", "pod", before, "-n", cluster.namespace, "--force", "--grace-period=0"]);
      await waitFor("another primary", 90_000, async () => (await cluster.primary()) !== before);
    },
  },
  postmaster: {
    about: "write gap when the postmaster is killed",
    metric: "longest write gap, postmaster killed",
    peer: 3.6,
    make: async (cluster) => {
      const primary = await cluster.primary();
      const kill = "kill -9 $(head -1 /var/lib/postgresql/data/pgdata/postmaster.pid)";
      await kubectl(["exec", "-n", cluster.namespace, primary, "-c", "postgres", "--", "bash", "-c", kill]);
    },
  },
  switchover: {
    about: "write gap of a planned switchover",
    metric: "longest write gap, planned switchover",
    peer: 6.3,
    make: async (cluster) => {
      const { status } = await cluster.get();
      const target = status?.instanceNames?.find((name) => name !== status.currentPrimary) ?? "";
      await cluster.switchOver(target);
    },
  },
};

async function measure(name: string, fault: Fault, runs: number): Promise<void> {
  const cluster = await createCluster(`bench-${name}`, { instances: 3 });
  const gaps: number[] = [];
  try {
    await cluster.healthy(3, 300_000);
    for (let run = 0; run < runs; run++) {
      const writer = await startWriter(cluster);
      await fault.make(cluster);
      await cluster.healthy(3, 300_000);
      const seen = (await writer.acknowledged()).length;
      await waitFor("writes after the fault", 60_000, async () => (await writer.acknowledged()).length > seen + 10);
      gaps.push(await writer.longestGap());
      await writer.stop();
      process.stderr.write(`${name} run ${run + 1} of ${runs}: ${gaps.at(-1)?.toFixed(2)} s\n`);
    }
  } finally {
    await cluster.remove();
  }
  const context = { runs: gaps, peer: peerOrigin };
  report({ bench: name, metric: fault.metric, ours: median(gaps), peer: fault.peer, unit: "s", context });
}

/** Longest time between two acknowledged writes through the read-write Service, by fault. */
export const gapBenches: Readonly<Record<string, Bench>> = Object.fromEntries(
  Object.entries(faults).map(([name, fault]) => [
    name,
    { about: fault.about, needsCluster: true, run: (runs: number) => measure(name, fault, runs) },
  ]),
);
