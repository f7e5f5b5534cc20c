import { secretNames } from "../../../src/api/cluster-facts.ts";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import type { Job, PersistentVolumeClaim, Pod } from "../../../src/api/generated/kubernetes.ts";
import { labels } from "../../../src/api/labels.ts";
import type { KubeClient } from "../../../src/kube/kube-client.ts";
import { resources } from "../../../src/kube/resources.ts";
import { createStore, type RunnableStore } from "../../../src/kube/store.ts";
import { secretText } from "../../../src/pki/inspect.ts";
import { isKubeError, type KubeObject } from "../../../src/ports/kube-api.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { captureLogs } from "../../support/log-capture.ts";
import { aStatus, primaryStatus } from "../../unit/plan/cluster/fixtures.ts";
import { type FakeInstance, startFakeInstance } from "./fake-instance.ts";

/**
 * Plays, on a real API server, everything that a cluster without nodes lacks: it binds and starts pods, completes Jobs,
 * binds volumes, collects garbage, and runs a pretend PostgreSQL in each instance pod that follows `targetPrimary`.
 */
export interface FakeNode {
  readonly instances: ReadonlyMap<string, FakeInstance>;
  /** Pods of these names stay Pending. */
  readonly holdPods: Set<string>;
  /** Node of a pod by its name; node-1 when there is none. */
  readonly nodeOf: Map<string, string>;
  /** Jobs of these names never end. */
  readonly holdJobs: Set<string>;
  /** Ends a pod as `kubectl delete --force` does. */
  killPod(name: string): Promise<void>;
  setReady(name: string, ready: boolean): Promise<void>;
  stop(): Promise<void>;
}

let lastAddress = 1;

export async function startFakeNode(api: KubeClient, namespace: string): Promise<FakeNode> {
  const stop = new AbortController();
  const logger = captureLogs().logger;
  const options = { logger, clock: systemClock, namespace };
  const pods = createStore(api, resources.pods, options);
  const jobs = createStore(api, resources.jobs, options);
  const volumes = createStore(api, resources.persistentVolumeClaims, options);
  const clusters = createStore(api, resources.clusters, options);
  const stores: RunnableStore<KubeObject>[] = [pods, jobs, volumes, clusters] as never;
  const instances = new Map<string, FakeInstance>();
  const starting = new Set<string>();

  const node: FakeNode = {
    instances,
    holdPods: new Set(),
    nodeOf: new Map(),
    holdJobs: new Set(),
    async killPod(name) {
      await tolerate(api.delete(resources.pods, { namespace, name }, { gracePeriodSeconds: 0 }));
    },
    async setReady(name, ready) {
      await patchStatus(resources.pods, name, { conditions: [readyCondition(ready)] });
    },
    async stop() {
      stop.abort();
      await running;
      await Promise.all([...instances.values()].map((it) => it.stop()));
    },
  };

  async function patchStatus(type: typeof resources.pods | typeof resources.jobs, name: string, status: object) {
    const body = { status };
    await tolerate(
      api.patch(type as typeof resources.pods, { namespace, name }, { type: "merge", body }, { subresource: "status" }),
    );
  }

  async function handlePod(pod: Pod): Promise<void> {
    const name = pod.metadata.name ?? "";
    if (pod.metadata.deletionTimestamp) {
      await stopInstance(name);
      await tolerate(
        api.delete(resources.pods, { namespace, name }, { gracePeriodSeconds: 0, uid: pod.metadata.uid ?? "" }),
      );
      return;
    }
    if (node.holdPods.has(name) || pod.metadata.labels?.[labels.podRole] !== "instance") return;
    if (!areVolumesThere(pod)) return;
    const key = pod.metadata.uid ?? "";
    if (pod.status?.phase !== "Pending" || starting.has(key)) return;
    starting.add(key);
    await stopInstance(name);
    await bind(name);
    lastAddress += 1;
    const ip = `127.${(process.pid % 200) + 1}.${Math.floor(lastAddress / 250) + 1}.${(lastAddress % 250) + 2}`;
    const clusterKey = { namespace, name: pod.metadata.labels[labels.cluster] ?? "" };
    const { serverTls } = secretNames(await api.get(resources.clusters, clusterKey));
    const secret = await api.get(resources.secrets, { namespace, name: serverTls });
    const instance = await startFakeInstance({
      name,
      ip,
      certificate: secretText(secret, "tls.crt") ?? "",
      privateKey: secretText(secret, "tls.key") ?? "",
    });
    instances.set(name, instance);
    followTarget(clusters.get(clusterKey));
    await patchStatus(resources.pods, name, {
      phase: "Running",
      podIP: ip,
      podIPs: [{ ip }],
      conditions: [readyCondition(true)],
    });
  }

  function areVolumesThere(pod: Pod): boolean {
    return (pod.spec?.volumes ?? []).every(
      (it) =>
        !it.persistentVolumeClaim || volumes.get({ namespace, name: it.persistentVolumeClaim.claimName }) !== undefined,
    );
  }

  async function bind(name: string): Promise<void> {
    const binding = {
      apiVersion: "v1",
      kind: "Binding",
      metadata: { name, namespace },
      target: { apiVersion: "v1", kind: "Node", name: node.nodeOf.get(name) ?? "node-1" },
    };
    await tolerate(api.create(resources.pods, binding as never, { subresource: "binding" }));
  }

  async function stopInstance(name: string): Promise<void> {
    const instance = instances.get(name);
    instances.delete(name);
    await instance?.stop();
  }

  async function handleJob(job: Job): Promise<void> {
    const name = job.metadata.name ?? "";
    if (job.metadata.deletionTimestamp) {
      if ((job.metadata.finalizers ?? []).length === 0) return;
      await tolerate(
        api.patch(resources.jobs, { namespace, name }, { type: "merge", body: { metadata: { finalizers: null } } }),
      );
      return;
    }
    if (node.holdJobs.has(name) || (job.status?.succeeded ?? 0) > 0 || starting.has(job.metadata.uid ?? "")) return;
    starting.add(job.metadata.uid ?? "");
    const at = `${new Date().toISOString().slice(0, 19)}Z`;
    const done = (type: string) => ({ type, status: "True", lastProbeTime: at, lastTransitionTime: at });
    await patchStatus(resources.jobs, name, {
      startTime: at,
      completionTime: at,
      succeeded: 1,
      conditions: [done("SuccessCriteriaMet"), done("Complete")],
    });
  }

  async function handleVolume(volume: PersistentVolumeClaim): Promise<void> {
    if (volume.metadata.deletionTimestamp) return releaseVolume(volume);
    if (volume.status?.phase === "Bound") return;
    await tolerate(
      api.patch(
        resources.persistentVolumeClaims,
        { namespace, name: volume.metadata.name ?? "" },
        { type: "merge", body: { status: { phase: "Bound" } } },
        { subresource: "status" },
      ),
    );
  }

  /** The protection of a volume ends with the last pod that uses it. */
  async function releaseVolume(volume: PersistentVolumeClaim): Promise<void> {
    const name = volume.metadata.name ?? "";
    const isUsed = pods
      .list(namespace)
      .some((pod) => (pod.spec?.volumes ?? []).some((it) => it.persistentVolumeClaim?.claimName === name));
    if (isUsed) return;
    const body = { metadata: { finalizers: null } };
    await tolerate(api.patch(resources.persistentVolumeClaims, { namespace, name }, { type: "merge", body }));
  }

  /** What instance managers do about the primary: the target promotes itself, everybody else is a standby. */
  function followTarget(cluster: Cluster | undefined): void {
    if (!cluster) return;
    const { currentPrimary, targetPrimary } = cluster.status ?? {};
    for (const instance of instances.values()) {
      if (!instance.name.startsWith(`${cluster.metadata.name}-`) || !instance.status) continue;
      const isTarget = instance.name === targetPrimary;
      if (isTarget && (instance.status.isPrimary || currentPrimary === targetPrimary || !currentPrimary)) {
        instance.status = primaryStatus({ timeLineID: instance.status.timeLineID ?? 1 });
      } else if (!isTarget) {
        const source = [...instances.values()].find((it) => it.name === currentPrimary);
        const streams = source?.status?.isPrimary ?? false;
        instance.status = aStatus({
          timeLineID: instance.status.timeLineID ?? 1,
          isWalReceiverActive: streams,
        });
      }
    }
    const target = instances.get(targetPrimary ?? "");
    if (!target?.status || currentPrimary === targetPrimary) return;
    target.status = primaryStatus({ timeLineID: (target.status.timeLineID ?? 1) + (currentPrimary ? 1 : 0) });
    const status = { currentPrimary: targetPrimary, currentPrimaryTimestamp: new Date().toISOString() };
    track(
      tolerate(
        api.patch(
          resources.clusters,
          { namespace, name: cluster.metadata.name ?? "" },
          { type: "merge", body: { metadata: { resourceVersion: cluster.metadata.resourceVersion }, status } },
          { subresource: "status" },
        ),
      ),
    );
  }

  const pending = new Set<Promise<unknown>>();
  function track(work: Promise<unknown>): void {
    const done = work.catch((error: unknown) => {
      if (!stop.signal.aborted) console.error("fake node:", error);
    });
    pending.add(done);
    void done.finally(() => pending.delete(done));
  }

  pods.subscribe((event) => {
    if (event.type === "deleted") {
      track(stopInstance(event.object.metadata.name ?? ""));
      for (const volume of volumes.list(namespace)) track(handleVolume(volume));
    } else track(handlePod(event.object));
  });
  jobs.subscribe((event) => event.type !== "deleted" && track(handleJob(event.object)));
  volumes.subscribe((event) => {
    if (event.type !== "deleted") track(handleVolume(event.object));
    for (const pod of pods.list(namespace)) track(handlePod(pod));
  });
  clusters.subscribe((event) => {
    if (event.type !== "deleted") followTarget(event.object);
  });
  const running = Promise.all(stores.map((it) => it.run(stop.signal))).then(() => Promise.all(pending));
  await Promise.all(stores.map((it) => it.synced()));
  return node;
}

function readyCondition(ready: boolean) {
  return {
    type: "Ready",
    status: ready ? "True" : "False",
    lastTransitionTime: `${new Date().toISOString().slice(0, 19)}Z`,
  };
}

/** The object went away or changed meanwhile; the next event says what there is to do. */
async function tolerate(work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!isKubeError(error, "notFound", "conflict", "alreadyExists")) throw error;
  }
}
