import type { Cluster } from "../../src/api/generated/cluster.ts";
import type { FailoverQuorum } from "../../src/api/generated/failoverquorum.ts";
import type { Lease, Pod } from "../../src/api/generated/kubernetes.ts";
import { annotations } from "../../src/api/labels.ts";
import { formatLeaseVoters } from "../../src/api/lease-voters.ts";
import type { PostgresStatus } from "../../src/api/pg-status.ts";
import { sortInstances } from "../../src/plan/cluster/election.ts";
import { planFailover, planTargetRepair } from "../../src/plan/cluster/failover.ts";
import { waitForCommunication, waitForReadiness, waitForSinglePrimary } from "../../src/plan/cluster/guards.ts";
import type { ObservedCluster, PolledInstance } from "../../src/plan/cluster/observed.ts";
import { beginPass, type Wait } from "../../src/plan/cluster/pass.ts";
import { primaryState, waitForPromotion } from "../../src/plan/cluster/roles.ts";
import { silentLeaseMs } from "../../src/plan/cluster/silent-lease.ts";
import type { ApiServer, SimCluster, SimLease, SimQuorum } from "./api-server.ts";
import { formatLsn } from "./lsn.ts";
import type { Manager } from "./manager.ts";
import type { World } from "./world.ts";

const passMs = 1_000;
/** Kubernetes stops counting a pod as Ready when its node has not reported for so long. */
const nodeMonitorMs = 40_000;

/** The operator's real decisions about the primary, over a simulated cluster. */
export class Operator {
  readonly name = "op";
  readonly #world: World;
  readonly #api: ApiServer;
  readonly #managers: readonly Manager[];
  #leaseSeen: { text: string; at: number } | undefined;
  readonly #reported = new Map<string, { ready: boolean; at: number }>();

  readonly #asksForQuorum: boolean;

  constructor(world: World, api: ApiServer, managers: readonly Manager[], options: { failoverQuorum: boolean }) {
    this.#world = world;
    this.#asksForQuorum = options.failoverQuorum;
    this.#api = api;
    this.#managers = managers;
  }

  run(): void {
    this.#kubelets();
    this.#pass();
  }

  /** The kubelets tell whether the pods are ready; one that is cut off is only missed. */
  #kubelets(): void {
    this.#world.after(1_000, () => this.#kubelets());
    const { now } = this.#world;
    for (const { name, postgres } of this.#managers) {
      if (!this.#world.isUp(name, "api") || postgres.frozen) continue;
      this.#reported.set(name, { ready: postgres.running, at: now });
    }
    const ready = this.#managers
      .map(({ name }) => name)
      .filter((name) => {
        const told = this.#reported.get(name);
        return told?.ready === true && now - told.at < nodeMonitorMs;
      });
    const before = this.#api.cluster.ready;
    if (ready.length !== before.length || ready.some((name, index) => name !== before[index]))
      this.#api.cluster = { ...this.#api.cluster, ready };
  }

  #pass(): void {
    this.#world.after(passMs * this.#world.between(0.8, 1.2), () => this.#pass());
    if (!this.#world.isUp(this.name, "api")) return;
    if (!this.#api.lease) this.#api.recreateLease();
    const cluster = this.#api.clusterSeenBy(this.name);
    const polled = new Map<Manager, PostgresStatus>();
    for (const manager of this.#managers) this.#poll(manager, polled);
    this.#world.after(600, () => {
      if (this.#world.isUp(this.name, "api")) this.#conclude(cluster, polled);
    });
  }

  #poll(manager: Manager, polled: Map<Manager, PostgresStatus>): void {
    this.#world.send(this.name, manager.name, () => {
      if (!manager.up) return;
      manager.later(0, () => {
        if (!manager.postgres.running || manager.postgres.frozen) return;
        const status = statusOf(manager);
        this.#world.send(manager.name, this.name, () => polled.set(manager, status));
      });
    });
  }

  #leaseUnchanged(lease: SimLease): number {
    const text = JSON.stringify([lease.uid, lease.holder, lease.renewTime, lease.transitions]);
    if (this.#leaseSeen?.text !== text) this.#leaseSeen = { text, at: this.#world.now };
    return this.#world.now - this.#leaseSeen.at;
  }

  /** Before anything is concluded from a silent Lease it is read live. */
  #readLease(): SimLease | undefined {
    const lease = this.#api.leaseSeenBy(this.name);
    return lease && this.#leaseUnchanged(lease) >= silentLeaseMs ? this.#api.lease : lease;
  }

  #conclude(cluster: SimCluster, polled: Map<Manager, PostgresStatus>): void {
    const lease = this.#readLease();
    const active = this.#managers
      .filter((it) => cluster.active.includes(it.name) || polled.has(it))
      .map((it) => it.name);
    const timeline = Math.max(
      cluster.timeline,
      ...[...polled.values()].map((it) => (it.isPrimary ? (it.timeLineID ?? 0) : 0)),
    );
    const change: Partial<SimCluster> = {};
    if (active.length !== cluster.active.length) change.active = active;
    if (timeline !== cluster.timeline) change.timeline = timeline;
    if (cluster.current !== "") Object.assign(change, this.#plan(cluster, timeline, lease, polled));
    if (Object.keys(change).length === 0) return;
    const written = this.#api.writeStatus(this.name, cluster.version, change);
    if (written?.kind === "ok" && change.target)
      this.#world.note(() => `operator: target primary ${change.target}, current ${cluster.current}`);
  }

  #plan(
    sim: SimCluster,
    timeline: number,
    lease: SimLease | undefined,
    polled: Map<Manager, PostgresStatus>,
  ): Partial<SimCluster> {
    const pods = this.#managers.map((it) => podOf(it, sim.ready.includes(it.name)));
    const instances = this.#managers.map((manager, index): PolledInstance => {
      const status = polled.get(manager);
      const base = { name: manager.name, pod: pods[index] as Pod, ready: sim.ready.includes(manager.name) };
      return status ? { kind: "answered", ...base, status } : { kind: "silent", ...base, reason: "no answer" };
    });
    const { quorum } = this.#api;
    const cluster = clusterOf(sim, timeline, this.#managers.length, this.#asksForQuorum);
    const observed = {
      ...emptyObservation,
      pods,
      instances,
      failoverQuorum: quorum && quorumOf(quorum),
      lease: lease && leaseOf(lease),
      ...(lease ? { leaseUnchangedMs: this.#leaseUnchanged(lease) } : {}),
    } as unknown as ObservedCluster;
    const pass = beginPass(cluster, observed, new Date(this.#world.now));
    const sorted = sortInstances(instances, sim.current);
    const stages: (() => Wait | null)[] = [
      () => waitForPromotion(pass, primaryState(pass)),
      () => waitForSinglePrimary(sorted),
      () => planTargetRepair(pass),
      () => waitForCommunication(pass, sorted),
      () => waitForReadiness(pass, sorted),
      () => planFailover(pass, primaryState(pass), sorted),
    ];
    for (const stage of stages) if (stage()) break;
    const { targetPrimary = "", targetPrimaryTimestamp } = pass.status;
    if (targetPrimary === sim.target) return {};
    return { target: targetPrimary, targetAt: Date.parse(targetPrimaryTimestamp ?? "") };
  }
}

const emptyObservation = {
  nodes: new Map(),
  volumes: [],
  jobs: [],
  jobPods: [],
  operator: { drainTaints: [] },
};

function quorumOf({ primary, standbyNames }: SimQuorum): FailoverQuorum {
  return {
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "FailoverQuorum",
    metadata: { name: "c", namespace: "ns" },
    status: { method: "ANY", standbyNumber: 1, standbyNames: [...standbyNames], primary },
  };
}

function clusterOf(sim: SimCluster, timeline: number, instances: number, failoverQuorum: boolean): Cluster {
  const synchronous = { method: "any" as const, number: 1, dataDurability: "required" as const, failoverQuorum };
  return {
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Cluster",
    metadata: { name: "c", namespace: "ns", uid: "u", resourceVersion: String(sim.version) },
    spec: { instances, storage: { size: "1Gi" }, postgresql: failoverQuorum ? { synchronous } : {} },
    status: {
      currentPrimary: sim.current,
      targetPrimary: sim.target,
      targetPrimaryTimestamp: new Date(sim.targetAt).toISOString(),
      timelineID: timeline,
      instances,
      readyInstances: sim.ready.length,
    },
  };
}

function podOf(manager: Manager, ready: boolean): Pod {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: manager.name, namespace: "ns", uid: String(manager.uid), labels: {} },
    spec: { containers: [], nodeName: manager.name },
    status: { phase: "Running", conditions: [{ type: "Ready", status: ready ? "True" : "False" }] },
  };
}

function leaseOf(lease: SimLease): Lease {
  return {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: {
      name: "c",
      namespace: "ns",
      annotations: lease.voters ? { [annotations.leaseVoters]: formatLeaseVoters(lease.voters) } : {},
    },
    spec: { holderIdentity: lease.holder, renewTime: lease.renewTime, leaseTransitions: lease.transitions },
  };
}

function statusOf({ name, postgres, holder }: Manager): PostgresStatus {
  const grant = holder.bindingGrant();
  const { record, silentMs } = holder;
  const position = formatLsn(postgres.wal.length);
  return {
    systemID: "1",
    isPrimary: postgres.isPrimaryData,
    ...(postgres.isPrimaryData ? { currentLsn: position } : { receivedLsn: position, replayLsn: position }),
    timeLineID: postgres.timeline,
    replayPaused: false,
    pendingRestart: false,
    pendingRestartForDecrease: false,
    isWalReceiverActive: postgres.receiving,
    isPgRewindRunning: false,
    mightBeUnavailable: false,
    node: "",
    pod: { metadata: { name }, spec: { containers: null }, status: {} },
    executableHash: "",
    instanceManagerVersion: "",
    instanceArch: "",
    isInstanceManagerUpgrading: false,
    sessionID: "",
    isPodReady: false,
    cnpgTs: {
      ...(record ? { holder: record.holder } : {}),
      ...(silentMs === undefined ? {} : { silentMs }),
      ...(grant ? { grant: { holder: grant.holder, leftMs: 1 } } : {}),
    },
  };
}
