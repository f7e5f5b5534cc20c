import type { LeaseRecord } from "../../src/plan/instance/lease.ts";
import type { World } from "./world.ts";

export interface SimLease extends LeaseRecord {
  version: number;
  uid: number;
}

/** What the simulation needs of a Cluster. */
export interface SimCluster {
  version: number;
  target: string;
  targetAt: number;
  current: string;
  timeline: number;
  /** Instances whose manager answered once. */
  active: readonly string[];
  /** Pods that are Ready, as Kubernetes tells it. */
  ready: readonly string[];
}

/** The FailoverQuorum: whose transactions wait for one of which standbys. */
export interface SimQuorum {
  primary: string;
  standbyNames: string[];
}

export type ApiAnswer<T> = { kind: "ok"; value: T } | { kind: "conflict" } | { kind: "notFound" };

const emptyLease = { holder: "", renewTime: "", transitions: 0, durationSeconds: 0, voters: undefined };

/** The API server: linearizable, every write against the version that was read. */
export class ApiServer {
  readonly name = "api";
  lease: SimLease | undefined;
  cluster: SimCluster;
  /** Only kept where synchronous replication waits for some of the standbys. */
  quorum: SimQuorum | undefined;
  deletedLeases = 0;
  /** Called when the holder lists somebody for the first time. */
  onNewVoter: ((holder: string, voter: string) => void) | undefined;
  /** Who sees what was, and until when; reads that must be live are not among these. */
  readonly #stale = new Map<string, { until: number; cluster: SimCluster; lease: SimLease | undefined }>();
  /** Whose writes of status may get lost, and until when. */
  readonly #losing = new Map<string, number>();
  readonly #world: World;
  #version = 1;

  constructor(world: World, instances: readonly string[]) {
    this.#world = world;
    this.lease = { ...emptyLease, version: 1, uid: 1 };
    const [first = ""] = instances;
    this.cluster = { version: 1, target: first, targetAt: 0, current: "", timeline: 1, active: [], ready: [] };
  }

  /** A request over the network: carried there, done, and answered; each way may fail without anybody being told. */
  request<T>(from: string, work: () => ApiAnswer<T> | undefined, answer: (value: ApiAnswer<T>) => void): void {
    this.#world.send(from, this.name, () => {
      const value = work();
      if (value === undefined) return;
      this.#world.send(this.name, from, () => answer(value));
    });
  }

  readLease(): ApiAnswer<SimLease> {
    return this.lease ? { kind: "ok", value: this.lease } : { kind: "notFound" };
  }

  writeLease(version: number, record: LeaseRecord): ApiAnswer<SimLease> {
    if (!this.lease) return { kind: "notFound" };
    if (this.lease.version !== version) return { kind: "conflict" };
    this.#version += 1;
    const before = this.lease.voters?.voters ?? [];
    this.lease = { ...record, version: this.#version, uid: this.lease.uid };
    const added = record.voters?.voters.find((name) => !before.includes(name) && name !== record.holder);
    if (added && record.holder !== "") this.onNewVoter?.(record.holder, added);
    return { kind: "ok", value: this.lease };
  }

  deleteLease(): void {
    this.lease = undefined;
    this.deletedLeases += 1;
  }

  recreateLease(): void {
    this.#version += 1;
    this.lease = { ...emptyLease, version: this.#version, uid: this.#version };
  }

  /** From now on a reader's copy of everything stays as it is. */
  holdCopyOf(reader: string, until: number): void {
    this.#stale.set(reader, { until, cluster: this.cluster, lease: this.lease });
  }

  loseWritesOf(writer: string, until: number): void {
    this.#losing.set(writer, until);
  }

  /** The Cluster as somebody sees it who is told of changes, and may not have been lately. */
  clusterSeenBy(reader: string): SimCluster {
    return this.#copyOf(reader)?.cluster ?? this.cluster;
  }

  leaseSeenBy(reader: string): SimLease | undefined {
    const copy = this.#copyOf(reader);
    return copy ? copy.lease : this.lease;
  }

  #copyOf(reader: string) {
    const copy = this.#stale.get(reader);
    return copy && this.#world.now < copy.until ? copy : undefined;
  }

  /** As `writeCluster`; `undefined` when the write or its answer is lost. */
  writeStatus(writer: string, version: number | undefined, change: Partial<SimCluster>) {
    const isLosing = this.#world.now < (this.#losing.get(writer) ?? Number.NEGATIVE_INFINITY);
    if (!isLosing || this.#world.chance(0.4)) return this.writeCluster(version, change);
    const arrives = this.#world.chance(0.5);
    this.#world.note(() => `${writer}: its write of the status ${arrives ? "is not answered" : "is lost"}`);
    if (arrives) this.writeCluster(version, change);
    return undefined;
  }

  writeCluster(version: number | undefined, change: Partial<SimCluster>): ApiAnswer<SimCluster> {
    if (version !== undefined && version !== this.cluster.version) return { kind: "conflict" };
    this.#version += 1;
    this.cluster = { ...this.cluster, ...change, version: this.#version };
    return { kind: "ok", value: this.cluster };
  }
}
