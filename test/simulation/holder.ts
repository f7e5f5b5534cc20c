import { compileLeaseTimings, isOwnLease, type LeaseRecord, mustHandOver } from "../../src/plan/instance/lease.ts";
import { type Grant, grantOf, type PromiseAnswer, type PromiseRequest } from "../../src/plan/instance/promise.ts";
import type { ReleaseNotice } from "../../src/plan/instance/release-notice.ts";
import {
  isKnownTenure,
  type PromiseRound,
  type RightState,
  type RightTimings,
  type WriteRight,
} from "../../src/plan/instance/right-to-write.ts";
import type { SimCluster, SimLease } from "./api-server.ts";
import type { Manager } from "./manager.ts";

/** The simulated counterpart of `PrimaryLease`: the same plans in the same order, with messages for requests. */
export class Holder {
  readonly leaseTimings = compileLeaseTimings(undefined);
  readonly timings: RightTimings;
  right: WriteRight | undefined;
  grant: Grant | undefined;
  record: LeaseRecord | undefined;
  readonly #manager: Manager;
  #lease: SimLease | undefined;
  #seen: { key: string; at: number } | undefined;
  #wanted = false;
  #held = false;
  #heldBefore = false;
  #ownTransitions: number | undefined;
  #epoch = 0;
  #claiming: number | undefined;
  #told: ReleaseNotice | undefined;
  #attempted: string[] = [];
  /** The record that this one's took the place of. */
  #replaced: LeaseRecord | undefined;
  #busy = false;
  #nextAt = Number.NEGATIVE_INFINITY;

  constructor(manager: Manager) {
    this.#manager = manager;
    this.timings = manager.rules.compileRightTimings(this.leaseTimings);
  }

  get state(): RightState {
    const { name, local, rules } = this.#manager;
    return rules.stateOfRight(this.right, { me: name, now: local, timings: this.timings });
  }

  get #hasRight(): boolean {
    const { name, local } = this.#manager;
    return this.#heldBefore && isKnownTenure(this.right, { me: name, now: local, timings: this.timings });
  }

  get held(): boolean {
    if (!this.#manager.rules.enforces) return this.#held;
    return this.#held && this.state.kind === "good";
  }

  get silentMs(): number | undefined {
    return this.#seen && this.#manager.local - this.#seen.at;
  }

  want(): void {
    if (!this.#wanted) this.#nextAt = Number.NEGATIVE_INFINITY;
    this.#wanted = true;
  }

  adopt(deadlineMs: number | undefined): void {
    this.#heldBefore = this.#wanted = true;
    const { name: me, local: now, kept: ground, rules } = this.#manager;
    this.right = rules.adoptedRight({ me, deadlineMs, now, timings: this.timings, ground });
  }

  bindingGrant(): Grant | undefined {
    const { rules, local } = this.#manager;
    return rules.binds(this.grant, this.record, local, this.#told) ? this.grant : undefined;
  }

  noteRelease(notice: ReleaseNotice): void {
    this.#told = notice;
    this.#nextAt = Number.NEGATIVE_INFINITY;
  }

  promise(request: PromiseRequest): PromiseAnswer {
    const { name, local, rules } = this.#manager;
    const grant = this.bindingGrant();
    const claiming = this.#claiming !== undefined;
    const isHolder = this.#held || this.#heldBefore;
    const answer = rules.planPromise(
      { cluster: "c", me: name, record: this.record, claiming, isHolder, grant },
      request,
    );
    if (answer.granted) this.grant = grantOf(grant, request, local);
    return answer;
  }

  applyRound(round: PromiseRound): void {
    const { name, local, rules } = this.#manager;
    const next = rules.rightAfterRound(this.right, round, { me: name, now: local, timings: this.timings });
    if (next && next !== this.right) this.#setRight(next);
  }

  lapse(): void {
    if (this.state.kind !== "good") this.right = undefined;
  }

  #setRight(right: WriteRight): void {
    const { name, local, rules } = this.#manager;
    this.right = right;
    this.#manager.kept = right;
    this.#manager.setDeadline(rules.deadlineOfRight(right, { me: name, now: local, timings: this.timings }));
  }

  standDown(): void {
    const { name, cluster } = this.#manager;
    const { record } = this;
    if (record && this.#isOwn(record)) this.#heldBefore = true;
    if (this.#held || this.#heldBefore) {
      this.release(() => undefined);
      return;
    }
    const { current: currentPrimary = "", target = "" } = cluster ?? {};
    const targetPrimary = target === "pending" ? "" : target;
    if (record && mustHandOver({ me: name, record, currentPrimary, targetPrimary })) this.want();
    else if (this.#wanted) this.release(() => undefined);
  }

  release(done: () => void): void {
    this.#wanted = false;
    this.#epoch += 1;
    this.right = undefined;
    this.#manager.kept = undefined;
    this.#manager.setDeadline(undefined);
    if (!this.#heldBefore) {
      done();
      return;
    }
    this.#held = this.#heldBefore = false;
    this.#tellRelease();
    this.#giveBack(3, done);
  }

  #tellRelease(): void {
    const { record } = this;
    const { name, uid } = this.#manager;
    if (!record || !this.#isOwn(record)) return;
    const renewTimes = [...new Set([record.renewTime, ...this.#attempted])];
    const notice = { cluster: "c", holder: name, holderUID: String(uid), transitions: record.transitions, renewTimes };
    const voters = (record.voters?.voters ?? []).filter((voter) => voter !== name);
    for (const voter of voters) this.#manager.tellPeer(voter, (peer) => peer.holder.noteRelease(notice));
  }

  #giveBack(attempts: number, done: () => void): void {
    if (attempts === 0) {
      done();
      return;
    }
    const { api } = this.#manager;
    const again = () => this.#giveBack(attempts - 1, done);
    this.#manager.ask<SimLease>(
      2_000,
      () => api.readLease(),
      (read) => {
        if (read.kind !== "ok") return again();
        if (!this.#isOwn(read.value)) return done();
        this.#manager.ask<SimLease>(
          3_000,
          () =>
            api.writeLease(read.value.version, {
              ...read.value,
              holder: "",
              renewTime: this.#stamp(),
              voters: {
                voters: this.#planVoters(read.value, this.#manager.cluster?.target),
                holderUID: String(this.#manager.uid),
                releasedBy: this.#manager.name,
                ...this.#walEnd(),
              },
            }),
          (written) => {
            if (written.kind !== "ok") return again();
            this.#manager.note(() => "released the lease");
            done();
          },
        );
      },
    );
  }

  #walEnd(): { walEnd?: string } {
    const { postgres } = this.#manager;
    return postgres.isPrimaryData && !postgres.running && postgres.endedAt !== undefined
      ? { walEnd: String(postgres.endedAt) }
      : {};
  }

  /** Where the WAL of a former primary ends that gave the Lease back to this one. */
  formerEnd(former: string): bigint | undefined {
    if (this.#replaced?.transitions !== (this.right?.transitions ?? 0) - 1) return undefined;
    const { releasedBy, walEnd } = this.#replaced.voters ?? {};
    return releasedBy === former && walEnd !== undefined ? BigInt(walEnd) : undefined;
  }

  askHolder(done: (value: "me" | "former" | "other" | "nobody") => void): void {
    this.#manager.ask<SimLease>(
      1_500,
      () => this.#manager.api.readLease(),
      (read) => {
        if (read.kind !== "ok") return;
        const { holder } = read.value;
        if (this.#isOwn(read.value)) done("me");
        else if (holder === "") done(read.value.voters?.releasedBy === this.#manager.name ? "former" : "nobody");
        else done(holder === this.#manager.name ? "former" : "other");
      },
    );
  }

  #stamp(): string {
    return `${this.#manager.name}@${this.#manager.local}`;
  }

  #isOwn(record: LeaseRecord): boolean {
    const { name, uid, peers } = this.#manager;
    return isOwnLease({ me: name, myUid: String(uid), record, clusterOfOne: peers.size === 0 });
  }

  /** One look or write, when it is time. */
  step(): void {
    const { local } = this.#manager;
    if (this.#busy || local < this.#nextAt) return;
    if (this.#held && this.#lease) {
      this.#decide(this.#lease);
      return;
    }
    this.#busy = true;
    this.#manager.ask<SimLease>(
      1_500,
      () => this.#manager.api.readLease(),
      (answer) => {
        this.#busy = false;
        if (answer.kind !== "ok") return this.#failed(answer.kind === "conflict");
        this.#lease = answer.value;
        if (answer.value.version !== this.#claiming) this.#claiming = undefined;
        this.#decide(answer.value);
      },
    );
  }

  #failed(conflict: boolean): void {
    this.#lease = undefined;
    this.#nextAt = this.#manager.local + (conflict ? 20 : 2_000);
  }

  #notice(record: LeaseRecord): void {
    this.record = record;
    const key = JSON.stringify([record.holder, record.renewTime, record.voters?.holderUID ?? ""]);
    if (this.#seen?.key !== key) this.#seen = { key, at: this.#manager.local };
    if (this.#heldBefore && this.#isOwn(record)) this.#ownTransitions = record.transitions;
  }

  #decide(lease: SimLease): void {
    const { name, uid, local, rules, cluster, peers } = this.#manager;
    this.#notice(lease);
    this.#nextAt = local + 500;
    if (!this.#wanted && !this.#held && !this.#heldBefore) return;
    const decision = rules.planLease({
      me: name,
      myUid: String(uid),
      record: lease,
      heldBefore: this.#heldBefore,
      ownTransitions: this.#ownTransitions,
      unchangedMs: local - (this.#seen?.at ?? local),
      rightHeld: this.#hasRight,
      leaseDurationMs: this.leaseTimings.leaseDurationMs,
      currentPrimary: cluster?.current ?? "",
      clusterOfOne: peers.size === 0,
      promisedMs: Math.max(0, (this.bindingGrant()?.until ?? local) - local),
      toldReleased: rules.isReleasedBy(this.#told, lease),
    });
    switch (decision.kind) {
      case "claim":
        if (!(cluster && (this.#wanted || this.#held))) return;
        if (this.#hasRight) this.#write(lease, true, decision.reason);
        else this.#claim(lease, decision.reason);
        return;
      case "renew":
        this.#write(lease, false, "");
        return;
      case "wait":
        this.#lease = undefined;
        this.#nextAt = local + Math.max(10, Math.min(100, decision.afterMs));
        return;
      case "lost":
        this.#held = this.#heldBefore = this.#wanted = false;
        this.#ownTransitions = undefined;
        this.right = undefined;
        this.#manager.restartAfterLoss();
        return;
      case "refuse":
        this.#lease = undefined;
        return;
    }
  }

  /** What was wished for by an old copy of the Cluster is not taken. */
  #claim(lease: SimLease, reason: string): void {
    const manager = this.#manager;
    this.#busy = true;
    manager.ask<SimCluster>(
      1_500,
      () => ({ kind: "ok", value: manager.api.cluster }),
      (answer) => {
        this.#busy = false;
        if (answer.kind !== "ok") return this.#failed(false);
        const { current, target } = manager.cluster ?? { current: "", target: "" };
        if (manager.rules.outdatedWish({ current, target }, answer.value) !== undefined) {
          manager.take(answer.value);
          return this.#failed(true);
        }
        const mayBeNew = answer.value.current === "" || answer.value.current === manager.name;
        if (lease.transitions > 0 || mayBeNew) this.#write(lease, true, reason);
        else this.#failed(false);
      },
    );
  }

  #planVoters(record: LeaseRecord, successor?: string): string[] {
    const { name, rules, cluster, peers } = this.#manager;
    return rules.planVoters({
      me: name,
      listed: record.voters?.voters ?? [],
      instanceNames: [name, ...peers.keys()],
      active: [...(cluster?.active ?? []), ...(successor ? [successor] : [])],
    });
  }

  #write(lease: SimLease, isClaim: boolean, reason: string): void {
    const { name, uid, local: startedAt, rules, api } = this.#manager;
    const epoch = this.#epoch;
    const voters = this.#planVoters(lease);
    const transitions = lease.transitions + (isClaim ? 1 : 0);
    const during = rules.rightWhileWriting(this.right, { me: name, startedAt, voters });
    if (during) this.#setRight(during);
    this.#claiming = lease.version;
    this.#busy = true;
    const record = {
      holder: name,
      renewTime: this.#stamp(),
      transitions,
      durationSeconds: 15,
      voters: { voters, holderUID: String(uid) },
    };
    this.#attempted.push(record.renewTime);
    this.#manager.ask<SimLease>(
      3_000,
      () => api.writeLease(lease.version, record),
      (answer) => {
        this.#busy = false;
        if (answer.kind === "conflict") this.#claiming = undefined;
        if (answer.kind !== "ok") return this.#failed(answer.kind === "conflict");
        this.#lease = answer.value;
        this.#claiming = undefined;
        this.#attempted = [];
        this.#nextAt = this.#manager.local + 2_000;
        if (epoch !== this.#epoch || (isClaim && !this.#wanted && !this.#held)) {
          if (isClaim) this.#giveBack(3, () => undefined);
          return;
        }
        if (isClaim) this.#replaced = lease;
        this.#notice(answer.value);
        this.#heldBefore = true;
        this.#ownTransitions = transitions;
        if (!this.#held)
          this.#manager.note(() => `acquired the lease (${isClaim ? reason : "still mine"}), voters ${voters}`);
        this.#held = true;
        this.#setRight(rules.rightAfterWrite({ startedAt, voters, transitions }));
      },
    );
  }
}
