import { loadavg } from "node:os";
import { run } from "../../local/process/run.ts";
import { createCluster, operatorServes, type TestCluster } from "../e2e/support/cluster.ts";
import { getObject, kubectl } from "../e2e/support/kubectl.ts";
import { waitFor } from "../e2e/support/wait.ts";
import { startWriter, storedRows } from "../e2e/support/writer.ts";
import { faults } from "./faults.ts";
import type { ChaosRecord } from "./records.ts";
import { judge } from "./verdict.ts";

type Durability = ChaosRecord["durability"];

interface PlacedPod {
  spec: { nodeName: string };
  status: { podIP: string };
}

/** Rows of the session start here, far from those that are numbered by the time of day. */
const firstOfSessions = 1_000_000_000_000_000;

/** Creates the cluster that the faults are made on: one instance on each of three nodes. */
export async function createScene(durability: Durability): Promise<TestCluster> {
  const nodes = (await kubectl(["get", "nodes", "-o", "name"])).split("\n").filter(Boolean);
  if (nodes.length < 3)
    throw new Error(
      `the local Kubernetes has ${nodes.length} node(s), chaos needs 3: npm start -- --nodes 3 --no-quickstart`,
    );
  const synchronous = { method: "any", number: 1, dataDurability: "required" } as const;
  const cluster = await createCluster("chaos", {
    instances: 3,
    affinity: { podAntiAffinityType: "required" },
    ...(durability === "required" ? { postgresql: { synchronous } } : {}),
  });
  await cluster.healthy(3, 300_000);
  return cluster;
}

const placed = async (namespace: string, name: string) => {
  const pod = await getObject<PlacedPod>(namespace, "pod", name);
  if (!pod) throw new Error(`pod ${namespace}/${name} does not exist`);
  return pod;
};

/** A primary on another node than the operator, whose loss is another matter. */
async function placePrimary(cluster: TestCluster): Promise<{ primary: string; node: string; address: string }> {
  const selector = ["-l", "app.kubernetes.io/name=cloudnative-pg", "-o", "jsonpath={.items[*].spec.nodeName}"];
  const operatorNodes = (await kubectl(["get", "pods", "-n", "cnpg-system", ...selector])).split(" ");
  let primary = await cluster.primary();
  if (operatorNodes.includes((await placed(cluster.namespace, primary)).spec.nodeName)) {
    const names = (await cluster.get()).status?.instanceNames ?? [];
    const pods = await Promise.all(names.map(async (name) => ({ name, pod: await placed(cluster.namespace, name) })));
    primary = pods.find(({ pod }) => !operatorNodes.includes(pod.spec.nodeName))?.name ?? primary;
    await cluster.switchOver(primary);
    await cluster.healthy(3, 300_000);
  }
  const { spec, status } = await placed(cluster.namespace, primary);
  return { primary, node: spec.nodeName, address: status.podIP };
}

/** Makes one fault under writes and judges it. */
export async function makeOne(cluster: TestCluster, name: string, durability: Durability): Promise<ChaosRecord> {
  const fault = faults[name];
  if (!fault) throw new Error(`there is no fault ${name}`);
  const { primary, node, address } = await placePrimary(cluster);
  const elsewhere = (await kubectl(["get", "nodes", "-o", "jsonpath={.items[*].metadata.name}"])).split(" ");
  const writerNode = elsewhere.find((it) => it !== node) ?? node;
  const service = await startWriter(cluster, { name: "through-service", node: writerNode });
  const firstRow = firstOfSessions + Math.floor(Date.now() / 1000) * 100_000;
  const session = await startWriter(cluster, { name: "session", node, address, oneSession: true, firstRow });
  const load = Math.round((loadavg()[0] ?? 0) * 10) / 10;
  const faultAt = Date.now() / 1000;
  const end = await fault.make({ cluster, primary, node: Number(node.replace("node-", "")) });
  await new Promise((resolve) => setTimeout(resolve, fault.holdSeconds * 1000));
  await end();
  await operatorServes(cluster);
  await cluster.healthy(3, 600_000);
  const healthySeconds = Math.round((Date.now() / 1000 - faultAt) * 10) / 10;
  const seen = (await service.acknowledged()).length;
  await waitFor("writes after the fault", 60_000, async () => (await service.acknowledged()).length > seen + 20);
  // The pod of a session whose node was gone may be gone too; what it printed before is lost with it then.
  const bySession = await waitFor("the session's output", 60_000, () => session.acknowledged());
  const throughService = await service.acknowledged();
  await Promise.all([service.stop(), session.stop()]);
  const last = await cluster.primary();
  const stored = await storedRows(cluster);
  const moved = last !== primary;
  const verdict = judge({ faultAt, throughService, bySession, stored, moved });
  const commit = (await run("git", ["rev-parse", "--short", "HEAD"])).trim();
  return { fault: name, durability, moved, date: new Date().toISOString(), commit, healthySeconds, load, ...verdict };
}
