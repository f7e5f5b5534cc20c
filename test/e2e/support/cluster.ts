import type { Cluster } from "../../../src/api/generated/cluster.ts";
import { labels } from "../../../src/api/labels.ts";
import { phases } from "../../../src/api/phases.ts";
import { apply, getObject, kubectl } from "./kubectl.ts";
import { waitFor } from "./wait.ts";

/** A Cluster in a namespace of its own, with what the tests do to it. */
export interface TestCluster {
  readonly namespace: string;
  readonly name: string;
  get(): Promise<Cluster>;
  healthy(instances: number, timeoutMs?: number): Promise<Cluster>;
  primary(): Promise<string>;
  /** Runs SQL in an instance as the superuser over its socket; returns unaligned text. */
  sql(instance: string, statement: string, database?: string): Promise<string>;
  /** Runs SQL through the read-write Service as the application user, from inside an instance pod. */
  sqlThroughService(fromInstance: string, statement: string): Promise<string>;
  /** Asks for another primary as upstream's kubectl plugin does, and waits until it is the primary. */
  switchOver(target: string): Promise<void>;
  remove(): Promise<void>;
}

/** Creates a namespace and a Cluster with the given spec. */
export async function createCluster(
  name: string,
  spec: Partial<Cluster["spec"]>,
  metadata: { annotations?: Record<string, string> } = {},
): Promise<TestCluster> {
  return createClusterIn(await createNamespace(name), name, spec, metadata);
}

/** Creates a namespace; one of an earlier run may still be on its way out. */
export async function createNamespace(name: string): Promise<string> {
  const namespace = `e2e-${name}-${Date.now().toString(36)}`;
  await apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
  return namespace;
}

/** Creates a Cluster in a namespace that is there. */
export async function createClusterIn(
  namespace: string,
  name: string,
  spec: Partial<Cluster["spec"]>,
  metadata: { annotations?: Record<string, string> } = {},
): Promise<TestCluster> {
  await apply({
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Cluster",
    metadata: { name, namespace, ...metadata },
    spec: { imageName: "localhost/postgresql:17", storage: { size: "1Gi" }, ...spec },
  });
  return handle(namespace, name);
}

/**
 * Waits until the operator's webhooks answer and go on answering. What the API server says of the operator's pod is of no
 * use here: right after an outage it still is what it was before.
 */
export async function operatorServes({ namespace, name }: { namespace: string; name: string }): Promise<void> {
  const where = ["cluster", name, "-n", namespace, "--dry-run=server", "--overwrite"];
  let inARow = 0;
  await waitFor("the operator's webhooks", 400_000, async () => {
    inARow = await kubectl(["annotate", ...where, `example.com/probe=${inARow}`]).then(
      () => inARow + 1,
      () => 0,
    );
    return inARow >= 30;
  });
}

/** Whether the operator says that all is well with a cluster of so many instances. */
export function isHealthy({ status }: Cluster, instances: number): boolean {
  const { phase, readyInstances, instances: known, currentPrimary, targetPrimary } = status ?? {};
  const settled = phase === phases.healthy && currentPrimary === targetPrimary;
  return settled && readyInstances === instances && known === instances;
}

function handle(namespace: string, name: string): TestCluster {
  const get = async () => {
    const cluster = await getObject<Cluster>(namespace, "clusters.postgresql.cnpg.io", name);
    if (!cluster) throw new Error(`Cluster ${namespace}/${name} does not exist`);
    return cluster;
  };
  const exec = (instance: string, command: readonly string[]) =>
    kubectl(["exec", "-n", namespace, instance, "-c", "postgres", "--", ...command]);
  return {
    namespace,
    name,
    get,
    healthy: (instances, timeoutMs = 180_000) =>
      waitFor(
        `${namespace}/${name} healthy with ${instances} instances`,
        timeoutMs,
        async () => {
          const cluster = await get();
          return isHealthy(cluster, instances) ? cluster : undefined;
        },
        () => describe(namespace, name),
      ),
    primary: async () => {
      const current = (await get()).status?.currentPrimary;
      if (!current) throw new Error(`Cluster ${namespace}/${name} has no current primary`);
      return current;
    },
    sql: async (instance, statement, database = "app") =>
      (
        await exec(instance, ["psql", "-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", database, "-c", statement])
      ).trim(),
    sqlThroughService: async (fromInstance, statement) => {
      const secret = await getObject<{ data: Record<string, string> }>(namespace, "secret", `${name}-app`);
      const uri = Buffer.from(secret?.data["uri"] ?? "", "base64").toString();
      const args = ["psql", "-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", `${uri}?connect_timeout=3`, "-c", statement];
      return (await exec(fromInstance, args)).trim();
    },
    switchOver: async (target) => {
      const status = {
        targetPrimary: target,
        targetPrimaryTimestamp: new Date().toISOString().replace(/\.(\d{3})Z$/, ".$1000Z"),
        phase: phases.switchover,
        phaseReason: `Switching over to ${target}`,
      };
      const where = ["cluster", name, "-n", namespace, "--subresource=status", "--type=merge"];
      await kubectl(["patch", ...where, "-p", JSON.stringify({ status })]);
      await waitFor(`${target} to be primary`, 90_000, async () => (await get()).status?.currentPrimary === target);
    },
    remove: async () => {
      await kubectl(["delete", "namespace", namespace, "--wait=false", "--ignore-not-found"]);
    },
  };
}

/** What a person would look at first when a cluster is not as it should be. */
async function describe(namespace: string, name: string): Promise<string> {
  const selector = ["-l", `${labels.cluster}=${name}`, "-o", "name"];
  const instances = (await kubectl(["get", "pods", "-n", namespace, ...selector])).split("\n").filter(Boolean);
  const parts = await Promise.all([
    kubectl(["get", "clusters.postgresql.cnpg.io", name, "-n", namespace, "-o", "jsonpath={.status}"]),
    kubectl(["get", "pods,jobs,pvc", "-n", namespace]),
    kubectl(["get", "events", "-n", namespace, "--sort-by=.lastTimestamp"]),
    kubectl(["get", "lease", name, "-n", namespace, "-o", "jsonpath={.metadata.annotations}{.spec}"]),
    kubectl(["logs", "-n", "cnpg-system", "deployment/cnpg-controller-manager", "--tail=15"]),
    ...instances.map((pod) => kubectl(["logs", "-n", namespace, pod, "-c", "postgres", "--tail=25"]).catch(String)),
  ]);
  return parts.join("\n---\n");
}
