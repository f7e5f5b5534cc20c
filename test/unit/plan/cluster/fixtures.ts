import type { Cluster } from "../../../../src/api/generated/cluster.ts";
import type { Job, PersistentVolumeClaim, Pod, Service } from "../../../../src/api/generated/kubernetes.ts";
import { annotations, labels } from "../../../../src/api/labels.ts";
import type { PostgresStatus } from "../../../../src/api/pg-status.ts";
import { defaultBuildContext } from "../../../../src/build/context.ts";
import { desiredDisruptionBudgets } from "../../../../src/build/disruption-budgets.ts";
import { buildInstancePod, recordPodSpec } from "../../../../src/build/instance-pod.ts";
import { buildInitdbJob, buildJoinJob } from "../../../../src/build/jobs.ts";
import { buildLease } from "../../../../src/build/lease.ts";
import { roleLabels } from "../../../../src/build/metadata-repair.ts";
import { buildPvcs } from "../../../../src/build/pvcs.ts";
import { buildRole, buildRoleBinding } from "../../../../src/build/role.ts";
import { buildServiceAccount } from "../../../../src/build/service-account.ts";
import { desiredServices } from "../../../../src/build/services.ts";
import type { ClusterAction } from "../../../../src/plan/cluster/actions.ts";
import { actionName } from "../../../../src/plan/cluster/actions.ts";
import type { ObservedCluster, PolledInstance } from "../../../../src/plan/cluster/observed.ts";
import { planCluster } from "../../../../src/plan/cluster/plan-cluster.ts";
import { isActivePod, isReadyPod } from "../../../../src/plan/cluster/pods.ts";

export const now = new Date("2026-01-02T03:04:05.678Z");
export const image = "example.org/postgresql:17.2";

/** A defaulted cluster `c` in namespace `ns`. */
export function aCluster(
  spec: Partial<Cluster["spec"]> = {},
  status: Cluster["status"] = {},
  metadata: Partial<Cluster["metadata"]> = {},
): Cluster {
  return {
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Cluster",
    metadata: { name: "c", namespace: "ns", uid: "uid-c", resourceVersion: "10", ...metadata },
    spec: {
      instances: 3,
      imageName: image,
      storage: { size: "1Gi" },
      bootstrap: { initdb: { database: "app", owner: "app" } },
      ...spec,
    },
    status,
  };
}

type PodState = "ready" | "unready" | "pending" | "failed" | "terminating";

/** A pod of instance `c-<serial>` as the operator makes it, in the given state. */
export function aPod(cluster: Cluster, serial: number, state: PodState = "ready", node = `node-${serial}`): Pod {
  const imaged: Cluster = { ...cluster, status: { ...cluster.status, image } };
  const pod = recordPodSpec(buildInstancePod(imaged, serial, defaultBuildContext));
  const name = pod.metadata.name ?? "";
  const phase = state === "pending" ? "Pending" : state === "failed" ? "Failed" : "Running";
  return {
    ...pod,
    metadata: {
      ...pod.metadata,
      uid: `uid-pod-${serial}`,
      resourceVersion: "20",
      labels: { ...pod.metadata.labels, ...roleLabels(cluster, name) },
      ...(state === "terminating" ? { deletionTimestamp: "2026-01-02T03:04:00Z" } : {}),
    },
    spec: { ...pod.spec, containers: pod.spec?.containers ?? [], nodeName: node },
    status: {
      phase,
      podIP: `10.0.0.${serial}`,
      conditions: [{ type: "Ready", status: state === "ready" ? "True" : "False" }],
    },
  };
}

/** The volumes of instance `c-<serial>`. */
export function volumesOf(
  cluster: Cluster,
  serial: number,
  status: "ready" | "initializing" = "ready",
): PersistentVolumeClaim[] {
  return buildPvcs(cluster, serial, defaultBuildContext).map((it) => ({
    ...it,
    metadata: {
      ...it.metadata,
      uid: `uid-${it.metadata.name}`,
      resourceVersion: "30",
      creationTimestamp: "2026-01-01T00:00:00Z",
      labels: { ...it.metadata.labels, ...roleLabels(cluster, `c-${serial}`) },
      annotations: { ...it.metadata.annotations, [annotations.pvcStatus]: status },
    },
    status: { phase: "Bound" },
  }));
}

/** A Job of instance `c-<serial>`. */
export function aJob(
  cluster: Cluster,
  serial: number,
  role: "initdb" | "join",
  state: "running" | "complete" | "failed",
): Job {
  const job = (role === "initdb" ? buildInitdbJob : buildJoinJob)(cluster, serial, defaultBuildContext);
  return {
    ...job,
    metadata: { ...job.metadata, uid: `uid-${job.metadata.name}`, resourceVersion: "40" },
    status:
      state === "complete"
        ? { succeeded: 1, completionTime: "2026-01-02T00:00:00Z" }
        : state === "failed"
          ? { conditions: [{ type: "Failed", status: "True" }] }
          : { active: 1 },
  };
}

/** What an instance answers; a streaming standby unless told otherwise. */
export function aStatus(fields: Partial<PostgresStatus> = {}): PostgresStatus {
  return {
    systemID: "7000000000000000001",
    isPrimary: false,
    receivedLsn: "0/5000000",
    replayLsn: "0/5000000",
    timeLineID: 1,
    replayPaused: false,
    pendingRestart: false,
    pendingRestartForDecrease: false,
    isWalReceiverActive: true,
    isPgRewindRunning: false,
    mightBeUnavailable: false,
    node: "",
    pod: { metadata: { name: "" }, spec: { containers: null }, status: {} },
    loadedConfigurationHash: "h1",
    executableHash: "e1",
    instanceManagerVersion: "1.30.0",
    instanceArch: "amd64",
    isInstanceManagerUpgrading: false,
    sessionID: "s",
    isPodReady: false,
    ...fields,
  };
}

export const primaryStatus = (fields: Partial<PostgresStatus> = {}): PostgresStatus =>
  aStatus({ isPrimary: true, isWalReceiverActive: false, currentLsn: "0/5000000", ...fields });

export function answered(pod: Pod, status: PostgresStatus = aStatus()): PolledInstance {
  return { kind: "answered", name: pod.metadata.name ?? "", pod, ready: isReadyPod(pod), status };
}

export function silent(pod: Pod, reason = "connect ECONNREFUSED"): PolledInstance {
  return { kind: "silent", name: pod.metadata.name ?? "", pod, ready: isReadyPod(pod), reason };
}

/** An observation with nothing of the cluster in it. */
export function anObservation(fields: Partial<ObservedCluster> = {}): ObservedCluster {
  return {
    pods: [],
    jobPods: [],
    volumes: [],
    orphanVolumes: [],
    orphanPods: [],
    jobs: [],
    nodes: new Map(),
    instances: [],
    secrets: new Map(),
    certificates: new Map(),
    configMaps: new Map(),
    services: new Map(),
    serviceAccounts: new Map(),
    roles: new Map(),
    roleBindings: new Map(),
    budgets: new Map(),
    lease: undefined,
    failoverQuorum: undefined,
    poolers: [],
    databaseRoles: [],
    imageCatalogs: new Map(),
    clusterImageCatalogs: new Map(),
    backups: new Map(),
    operatorObjects: {},
    selectedPods: [],
    rolloutSlot: undefined,
    operator: {
      context: defaultBuildContext,
      commitHash: "none",
      managerHash: "e1",
      architectures: [{ goArch: "amd64", hash: "e1" }],
      certificateFingerprint: "f1",
      onlineUpdateEnabled: false,
      drainTaints: ["node.kubernetes.io/unschedulable"],
      instancesRolloutDelayMs: 0,
      clustersRolloutDelayMs: 0,
    },
    ...fields,
  };
}

/** An observation in which everything around the instances is as it should be. */
export function aSettledObservation(cluster: Cluster, fields: Partial<ObservedCluster> = {}): ObservedCluster {
  const volumes = fields.volumes ?? [];
  const instanceNames = [...new Set(volumes.map((it) => it.metadata.labels?.[labels.instanceName] ?? ""))].sort();
  const settled = withImage(cluster);
  const imaged: Cluster = { ...settled, status: { ...settled.status, instanceNames } };
  const live = <T extends { metadata: object }>(object: T): T => ({
    ...object,
    metadata: { ...object.metadata, uid: "uid-aux", resourceVersion: "50" },
  });
  const context = defaultBuildContext;
  const secret = (name: string) => ({
    apiVersion: "v1" as const,
    kind: "Secret" as const,
    metadata: { name, namespace: "ns", uid: `uid-${name}`, resourceVersion: `rv-${name}` },
  });
  const certificate = {
    kind: "present" as const,
    notBefore: now.getTime() - 1_000,
    notAfter: now.getTime() + 80 * 86_400_000,
    hasKey: true,
  };
  const dnsNames = ["rw", "r", "ro"].flatMap((it) => [
    `c-${it}`,
    `c-${it}.ns`,
    `c-${it}.ns.svc`,
    `c-${it}.ns.svc.cluster.local`,
  ]);
  const services = desiredServices(imaged, context).flatMap(({ name, service }): [string, Service][] =>
    service ? [[name, live(service)]] : [],
  );
  return anObservation({
    secrets: new Map(["c-ca", "c-server", "c-replication", "c-app"].map((name) => [name, secret(name)])),
    certificates: new Map([
      ["c-ca", { ...certificate, dnsNames: [] }],
      ["c-server", { ...certificate, dnsNames }],
      ["c-replication", { ...certificate, dnsNames: [] }],
    ]),
    services: new Map(services),
    serviceAccounts: new Map([["c", live(buildServiceAccount(imaged, context, { pullSecret: false }))]]),
    roles: new Map([["c", live(buildRole(imaged, context))]]),
    roleBindings: new Map([["c", live(buildRoleBinding(imaged, context))]]),
    budgets: new Map(
      desiredDisruptionBudgets(imaged, context).flatMap(({ name, budget }) =>
        budget ? [[name, live(budget)] as const] : [],
      ),
    ),
    lease: live(buildLease(imaged, context)),
    ...fields,
  });
}

/** Status of a healthy cluster of which `c-1` is primary. */
export function healthyStatus(instances = 3): NonNullable<Cluster["status"]> {
  return {
    currentPrimary: "c-1",
    targetPrimary: "c-1",
    image,
    pgDataImageInfo: { image, majorVersion: 17 },
    phase: "Cluster in healthy state",
    instances,
    readyInstances: instances,
  };
}

export function withImage(cluster: Cluster): Cluster {
  const info = { image, pgDataImageInfo: { image, majorVersion: 17 } };
  return { ...cluster, status: { ...info, ...cluster.status } };
}

/** A healthy cluster of three with its observation: `c-1` primary, `c-2` and `c-3` streaming. */
export function aHealthyCluster(spec: Partial<Cluster["spec"]> = {}): { cluster: Cluster; observed: ObservedCluster } {
  const cluster = aCluster(spec, healthyStatus(spec.instances ?? 3));
  const serials = Array.from({ length: cluster.spec.instances }, (_, index) => index + 1);
  const pods = serials.map((serial) => aPod(cluster, serial));
  const observed = aSettledObservation(cluster, {
    pods,
    volumes: serials.flatMap((serial) => volumesOf(cluster, serial)),
    instances: pods.map((pod, index) => answered(pod, index === 0 ? primaryStatus() : aStatus())),
  });
  return { cluster, observed };
}

/** Replaces pods, and with them who is asked: inactive ones are not. */
export function withPods(observed: ObservedCluster, pods: readonly Pod[]): ObservedCluster {
  const byName = new Map(observed.instances.map((it) => [it.name, it]));
  const instances = pods.filter(isActivePod).map((pod) => {
    const before = byName.get(pod.metadata.name ?? "");
    return before ? { ...before, pod, ready: isReadyPod(pod) } : answered(pod);
  });
  return { ...observed, pods, instances };
}

/** Names of the actions of a plan without status patches, with their object. */
export function stepsOf(actions: readonly ClusterAction[]): string[] {
  return actions.flatMap((action) => {
    switch (action.kind) {
      case "patchStatus":
        return [];
      case "create":
      case "update":
        return [`${actionName(action)} ${action.object.metadata.name}`];
      case "patch":
      case "delete":
        return [`${actionName(action)} ${action.target.name}`];
      case "event":
        return [`event ${action.event}`];
      default:
        return [action.kind];
    }
  });
}

export const plan = (cluster: Cluster, observed: ObservedCluster, at: Date = now) => planCluster(cluster, observed, at);

export { labels };
