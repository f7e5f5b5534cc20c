import { expandableStorageClass } from "../../local/csi/names.ts";
import type { Cluster } from "../../src/api/generated/cluster.ts";
import { createStoreKeys, storeConfiguration } from "../e2e/support/archive.ts";
import { createClusterIn, createNamespace, type TestCluster } from "../e2e/support/cluster.ts";
import { apply, getObject, kubectl } from "../e2e/support/kubectl.ts";
import type { ChaosRecord } from "./chaos-record.ts";
import { fakeClock } from "./fake-clock.ts";
import type { PlacedInstance, Scene, SceneKind } from "./fault.ts";
import { settle } from "./settle.ts";

interface Pod {
  metadata: { name: string };
  spec: { nodeName: string };
  status: { podIP?: string };
}

type Spec = Partial<Cluster["spec"]>;

/** Creates the cluster that faults are made on: one instance on each of three nodes. */
export async function createScene(
  durability: ChaosRecord["durability"],
  kind: SceneKind = "plain",
): Promise<TestCluster> {
  const nodes = (await kubectl(["get", "nodes", "-o", "name"])).split("\n").filter(Boolean);
  if (nodes.length < 3)
    throw new Error(
      `the local Kubernetes has ${nodes.length} node(s), chaos needs 3: npm start -- --nodes 3 --no-quickstart`,
    );
  const synchronous = { method: "any", number: 1, dataDurability: "required" } as const;
  const namespace = await createNamespace("chaos");
  const { spec, annotations } = await specials[kind](namespace);
  const whole: Spec = {
    instances: 3,
    affinity: { podAntiAffinityType: "required" },
    ...spec,
    postgresql: { ...spec.postgresql, ...(durability === "required" ? { synchronous } : {}) },
  };
  const cluster = await createClusterIn(namespace, "chaos", whole, { annotations });
  try {
    await cluster.healthy(3, 300_000);
  } catch (error) {
    await cluster.remove();
    throw error;
  }
  return cluster;
}

/** What the cluster of a kind has of its own. */
const specials: Record<SceneKind, (namespace: string) => Promise<{ spec: Spec; annotations: Record<string, string> }>> =
  {
    plain: async () => ({ spec: {}, annotations: {} }),
    loop: async () => ({
      spec: {
        storage: { size: "1Gi", storageClass: expandableStorageClass },
        // The volume is to be full because of a fault, not because of the segments that are kept.
        postgresql: { parameters: { wal_keep_size: "32MB", min_wal_size: "32MB", max_wal_size: "64MB" } },
      },
      annotations: {},
    }),
    clock: async (namespace) => {
      const clock = await fakeClock(namespace);
      await apply(...clock.objects);
      await createStoreKeys(namespace);
      // Archived by the manager itself: requests are signed with its own time.
      const archive = { barmanObjectStore: await storeConfiguration(namespace) };
      return { spec: { ...clock.spec, backup: archive }, annotations: clock.annotations };
    },
  };

/** Looks where the instances are; the primary is one on another node than the operator, whose loss is another matter. */
export async function stageScene(cluster: TestCluster): Promise<Scene> {
  const operators = await podsBy("cnpg-system", "app.kubernetes.io/name=cloudnative-pg");
  const busy = operators.map(({ spec }) => nodeNumber(spec.nodeName));
  const primary = await cluster.primary();
  const names = (await cluster.get()).status?.instanceNames ?? [];
  const instances = await Promise.all(names.map((name) => place(cluster.namespace, name)));
  const better = instances.find(({ node }) => !busy.includes(node));
  const current = instances.find(({ name }) => name === primary);
  if (better && current && busy.includes(current.node)) {
    await cluster.switchOver(better.name);
    await settle(cluster);
    return stageScene(cluster);
  }
  if (!current) throw new Error(`the primary ${primary} is none of the instances ${names.join(", ")}`);
  return {
    cluster,
    primary: current,
    standbys: instances.filter((instance) => instance !== current),
    operators: operators.flatMap(({ status }) => status.podIP ?? []),
  };
}

async function podsBy(namespace: string, selector: string): Promise<Pod[]> {
  const text = await kubectl(["get", "pods", "-n", namespace, "-l", selector, "-o", "json"]);
  return (JSON.parse(text) as { items: Pod[] }).items;
}

async function place(namespace: string, name: string): Promise<PlacedInstance> {
  const pod = await getObject<Pod>(namespace, "pod", name);
  if (!pod?.status.podIP) throw new Error(`pod ${namespace}/${name} does not exist or has no address`);
  return { name, node: nodeNumber(pod.spec.nodeName), address: pod.status.podIP };
}

function nodeNumber(name: string): number {
  return Number(name.replace("node-", ""));
}
