import { readFileSync } from "node:fs";
import { parseAllDocuments } from "yaml";
import { type ControlPlane, startControlPlane } from "../../../local/control-plane/control-plane.ts";
import { choosePort } from "../../../local/process/free-port.ts";
import { waitFor } from "../../../local/process/wait.ts";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import type { Event } from "../../../src/api/generated/kubernetes.ts";
import { createKubeApi } from "../../../src/kube/create-kube-api.ts";
import type { KubeClient } from "../../../src/kube/kube-client.ts";
import { loadKubeconfigConnection } from "../../../src/kube/kubeconfig.ts";
import { resources } from "../../../src/kube/resources.ts";
import type { Failpoint } from "../../../src/operator/failpoint.ts";
import { runOperator } from "../../../src/operator/main.ts";
import type { OperatorIdentity } from "../../../src/operator/operator-identity.ts";
import { isKubeError, type KubeObject, type ResourceType } from "../../../src/ports/kube-api.ts";
import type { PodExec } from "../../../src/ports/pod-exec.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { captureLogs, type LogCapture } from "../../support/log-capture.ts";
import { type FakeNode, startFakeNode } from "./fake-node.ts";

/** A real API server with our definitions. */
export interface World {
  controlPlane: ControlPlane;
  api: KubeClient;
  stop(): Promise<void>;
}

export async function startWorld(): Promise<World> {
  const controlPlane = await startControlPlane();
  const api = createKubeApi(loadKubeconfigConnection(controlPlane.kubeconfig), {
    requestsPerSecond: 5_000,
    requestBurst: 5_000,
  });
  const manifests = parseAllDocuments(readFileSync("dist/crds.k8s.yaml", "utf8")).map((it) => it.toJS() as KubeObject);
  for (const manifest of manifests) await api.create(resources.customResourceDefinitions, manifest);
  await waitFor("our kinds are served", () => api.serves(resources.clusters), { timeoutMs: 60_000 });
  await waitFor("all kinds are served", () => api.serves(resources.failoverQuorums), { timeoutMs: 60_000 });
  return {
    controlPlane,
    api,
    async stop() {
      await api.close();
      await controlPlane.stop();
    },
  };
}

/** One operator in this process. */
export interface RunningOperator {
  logs: LogCapture;
  /** Resolves when it ends by itself, for example by a failpoint. */
  ended: Promise<void>;
  stop(): Promise<void>;
}

/** Starts an operator that watches one namespace. `failpoint` may throw to end it on the spot, as a crash would. */
export function startOperator(
  world: World,
  namespace: string,
  failpoint: Failpoint = () => undefined,
  env: Record<string, string> = {},
  exec: PodExec = { run: () => Promise.reject(new Error("no pod of this test runs programs")) },
  given: { webhookPort?: number; runtimeFolder?: string; identity?: OperatorIdentity } = {},
): RunningOperator {
  const stop = new AbortController();
  const logs = captureLogs();
  const api = createKubeApi(loadKubeconfigConnection(world.controlPlane.kubeconfig));
  const crash = new Error("failpoint");
  const run = async () => {
    const [metricsPort, webhookPort] = await Promise.all([choosePort(), given.webhookPort ?? choosePort()]);
    const flags = {
      metricsAddress: { host: "127.0.0.1", port: metricsPort },
      leaderElect: false,
      leaderLeaseDurationMs: 15_000,
      leaderRenewDeadlineMs: 10_000,
      configMapName: "",
      secretName: "",
      webhookPort,
      maxConcurrentReconciles: 10,
    };
    const options = {
      flags,
      api,
      exec,
      clock: systemClock,
      random: systemRandom,
      logger: logs.logger,
      env: { WATCH_NAMESPACE: namespace, ...env },
      ...(given.runtimeFolder === undefined ? {} : { runtimeFolder: given.runtimeFolder }),
      ...(given.identity === undefined ? {} : { identity: given.identity }),
      failpoint: (action: string) => {
        try {
          failpoint(action);
        } catch {
          stop.abort(crash);
          throw crash;
        }
      },
    };
    await runOperator(options, stop.signal);
  };
  const ended = run()
    .catch((error: unknown) => {
      if (!stop.signal.aborted) throw error;
    })
    .finally(() => api.close());
  return {
    logs,
    ended,
    async stop() {
      stop.abort();
      await ended;
    },
  };
}

/** Why each pass over a cluster ended so far, as the operator tells it. */
export function endedPasses(operator: RunningOperator, cluster: string): string[] {
  return operator.logs.records
    .filter((it) => it.message === "Pass ended" && it.fields["name"] === cluster)
    .map((it) => String(it.fields["because"]));
}

/** Everything that most tests begin with: an API server, a namespace and an operator that watches it. */
export interface Stage {
  world: World;
  scene: Scene;
  operator: RunningOperator;
}

export async function openStage(env: Record<string, string> = {}): Promise<Stage> {
  const world = await startWorld();
  const scene = await openScene(world);
  return { world, scene, operator: startOperator(world, scene.namespace, undefined, env) };
}

/** Ends what was opened; parts that never came to be are left out. */
export async function closeStage({ world, scene, operator }: Partial<Stage>): Promise<void> {
  await operator?.stop();
  await scene?.stop();
  await world?.stop();
}

/** One namespace with its own pretend node. */
export interface Scene {
  namespace: string;
  node: FakeNode;
  create(name: string, spec?: Partial<Cluster["spec"]>): Promise<Cluster>;
  /** Makes a cluster with a name that begins so and is its own, waits until it is healthy, and gives the name. */
  createHealthy(prefix: string, spec?: Partial<Cluster["spec"]>): Promise<string>;
  cluster(name: string): Promise<Cluster>;
  patchSpec(name: string, spec: object): Promise<void>;
  patchStatus(name: string, status: object): Promise<void>;
  annotate(name: string, annotations: Record<string, string | null>): Promise<void>;
  waitHealthy(name: string, instances: number, timeoutMs?: number): Promise<Cluster>;
  /** @default timeoutMs 30000 */
  waitStatus(
    name: string,
    what: string,
    check: (status: NonNullable<Cluster["status"]>) => boolean,
    timeoutMs?: number,
  ): Promise<Cluster>;
  find<T extends KubeObject>(type: ResourceType<T>, name: string): Promise<T | undefined>;
  events(): Promise<Event[]>;
  stop(): Promise<void>;
}

let sceneCount = 0;

export async function openScene(world: World): Promise<Scene> {
  const { api } = world;
  sceneCount += 1;
  const namespace = `scene-${process.pid}-${sceneCount}`;
  await api.create(resources.namespaces, { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
  const node = await startFakeNode(api, namespace);
  const read = (name: string) => api.get(resources.clusters, { namespace, name });
  const patch = (name: string, body: object, subresource?: string) =>
    api.patch(resources.clusters, { namespace, name }, { type: "merge", body }, subresource ? { subresource } : {});

  async function waitStatus(
    name: string,
    what: string,
    check: (status: NonNullable<Cluster["status"]>) => boolean,
    timeoutMs = 30_000,
  ): Promise<Cluster> {
    let last: Cluster | undefined;
    const deadline = Date.now() + timeoutMs;
    while (Date.now() < deadline) {
      last = await read(name);
      if (check(last.status ?? {})) return last;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    throw new Error(`${what} did not come; status is ${summary(last)}`);
  }

  const create = (name: string, spec: Partial<Cluster["spec"]> = {}) =>
    api.create(resources.clusters, {
      apiVersion: "postgresql.cnpg.io/v1",
      kind: "Cluster",
      metadata: { namespace, name },
      spec: { instances: 3, imageName: "example.org/postgresql:17.2", storage: { size: "1Gi" }, ...spec },
    });
  const waitHealthy = (name: string, instances: number, timeoutMs?: number) =>
    waitStatus(
      name,
      `${instances} healthy instances of ${name}`,
      (it) =>
        it.phase === "Cluster in healthy state" &&
        it.readyInstances === instances &&
        it.instances === instances &&
        it.jobCount === 0,
      timeoutMs,
    );

  let clusterCount = 0;

  return {
    namespace,
    node,
    create,
    async createHealthy(prefix, spec) {
      clusterCount += 1;
      const name = `${prefix}${clusterCount}`;
      const created = await create(name, spec);
      await waitHealthy(name, created.spec.instances ?? 0);
      return name;
    },
    cluster: read,
    patchSpec: async (name, spec) => void (await patch(name, { spec })),
    patchStatus: async (name, status) => void (await patch(name, { status }, "status")),
    annotate: async (name, annotations) => void (await patch(name, { metadata: { annotations } })),
    waitHealthy,
    waitStatus,
    async find(type, name) {
      try {
        return await api.get(type, { namespace, name });
      } catch (error) {
        if (isKubeError(error, "notFound")) return undefined;
        throw error;
      }
    },
    events: () => api.list(resources.events, { namespace }),
    stop: () => node.stop(),
  };
}

function summary(cluster: Cluster | undefined): string {
  const { phase, phaseReason, currentPrimary, targetPrimary, instancesStatus, instanceNames, jobCount } =
    cluster?.status ?? {};
  return JSON.stringify({
    phase,
    phaseReason,
    currentPrimary,
    targetPrimary,
    instancesStatus,
    instanceNames,
    jobCount,
  });
}
