import { createCluster } from "../test/e2e/support/cluster.ts";
import { kubectl } from "../test/e2e/support/kubectl.ts";
import { type Bench, median, peerOrigin, report } from "./report.ts";

/** Sums the resident set of a pod's processes whose command line matches, in MB. */
async function residentMb(namespace: string, pod: string, container: string, pattern: string): Promise<number> {
  // The operator's image has no shell, so both are read through the process table of the container by its launcher's
  // own kernel interface where a shell exists; the operator is read from its metrics endpoint.
  const script = `for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline 2>/dev/null | grep -q '${pattern}' && awk '/VmRSS/{print $2}' $p/status; done`;
  const text = await kubectl(["exec", "-n", namespace, pod, "-c", container, "--", "bash", "-c", script]);
  return (
    text
      .split("\n")
      .filter(Boolean)
      .reduce((sum, kb) => sum + Number(kb), 0) / 1024
  );
}

async function operatorMb(): Promise<number> {
  const pods = await kubectl(["get", "pods", "-n", "cnpg-system", "-o", "jsonpath={.items[0].metadata.name}"]);
  const path = `/api/v1/namespaces/cnpg-system/pods/${pods}:8080/proxy/metrics`;
  const metrics = await kubectl(["get", "--raw", path]);
  const line = /^process_resident_memory_bytes (\S+)$/m.exec(metrics);
  if (!line) throw new Error("the operator's /metrics has no process_resident_memory_bytes");
  return Number(line[1]) / 1024 / 1024;
}

/** Resident memory of the operator and of an instance manager with one cluster running. */
export const memoryBench: Bench = {
  about: "resident memory of operator and instance manager",
  needsCluster: true,
  async run(runs) {
    const cluster = await createCluster("bench-memory", { instances: 1 });
    try {
      await cluster.healthy(1, 300_000);
      const operator: number[] = [];
      const instance: number[] = [];
      for (let run = 0; run < runs; run++) {
        await new Promise((resolve) => setTimeout(resolve, 10_000));
        operator.push(await operatorMb());
        instance.push(await residentMb(cluster.namespace, "bench-memory-1", "postgres", "manager.cjs"));
      }
      const context = { runs, peer: peerOrigin };
      const figure = { bench: "memory", unit: "MB" };
      report({ ...figure, metric: "operator resident", ours: median(operator), peer: 69, context });
      report({ ...figure, metric: "instance manager resident", ours: median(instance), peer: 63, context });
    } finally {
      await cluster.remove();
    }
  },
};
