import type { PromiseAnswer, PromiseRequest } from "../../src/plan/instance/promise.ts";
import { type RightGround, votersToAsk } from "../../src/plan/instance/right-to-write.ts";
import { type RoleDecision, planStart as realStart } from "../../src/plan/instance/role.ts";
import type { ApiAnswer, ApiServer, SimCluster, SimQuorum } from "./api-server.ts";
import { Holder } from "./holder.ts";
import type { Durability } from "./oracle.ts";
import type { Postgres } from "./postgres.ts";
import type { Rules } from "./rules.ts";
import type { World } from "./world.ts";

/** Pause between looks, in milliseconds. */
const lookMs = 200;
/** Pause between reads of the Cluster. */
const readMs = 500;

/** Of any FailoverQuorum here. */
const quorumStatus = { method: "ANY", standbyNumber: 1 };

/** Clock of a node: it runs a little fast or slow, and shows another time than the others. */
export interface NodeClock {
  offset: number;
  rate: number;
}

/** One pod: launcher and instance manager around a PostgreSQL. */
export class Manager {
  readonly name: string;
  readonly postgres: Postgres;
  readonly world: World;
  readonly api: ApiServer;
  readonly rules: Rules;
  readonly clock: NodeClock;
  readonly peers = new Map<string, Manager>();
  uid = 1;
  /** Grows with each process of the manager. */
  life = 0;
  up = false;
  pausedUntil = 0;
  cluster: SimCluster | undefined;
  holder!: Holder;
  /** The launcher's deadline on the node's clock. */
  deadline: number | undefined;
  /** What the launcher keeps of the right for the next runtime. */
  kept: RightGround | undefined;
  /** How late the launcher may act. */
  launcherLateMs = 50;
  /** It can't tell by itself whose data is newer. */
  asksForPerson = false;
  #busy = false;
  #promoting = false;
  #stopping: "fast" | "immediate" | undefined;
  #terminating = false;
  #keeperStops = false;
  #readAt = 0;
  #askedAt = Number.NEGATIVE_INFINITY;
  #asking = false;
  #holderAnswer: { value: "me" | "former" | "other" | "nobody"; at: number } | undefined;
  #claimingCurrent = false;

  /** Which of the standbys commits wait for; with `some`, failovers go by the quorum. */
  readonly #synchronous: Exclude<Durability, "none"> | undefined;
  #quorumAt = 0;

  constructor(deps: {
    world: World;
    api: ApiServer;
    rules: Rules;
    postgres: Postgres;
    clock: NodeClock;
    synchronous: Durability;
  }) {
    this.#synchronous = deps.synchronous === "none" ? undefined : deps.synchronous;
    this.world = deps.world;
    this.api = deps.api;
    this.rules = deps.rules;
    this.postgres = deps.postgres;
    this.clock = deps.clock;
    this.name = deps.postgres.name;
  }

  get local(): number {
    const slept = this.rules.countsSleep ? 0 : this.postgres.sleptMs;
    return this.clock.offset + this.clock.rate * (this.world.now - slept);
  }

  note(text: () => string): void {
    this.world.note(() => `${this.name}: ${text()}`);
  }

  /** Runs something of this process after a time on the node's clock, unless it ended meanwhile; a pause holds it up. */
  later(localMs: number, run: () => void): void {
    const { life } = this;
    const go = () => {
      if (life !== this.life || !this.up) return;
      const until = Math.max(this.pausedUntil, this.postgres.frozenUntil);
      if (this.world.now < until) this.world.at(until, go);
      else run();
    };
    this.world.after(localMs / this.clock.rate, go);
  }

  /** A request to the API server with a limit on the own clock; exactly one of answer and failure comes, if the process lives. */
  ask<T>(
    limitMs: number,
    work: () => ApiAnswer<T> | undefined,
    done: (answer: ApiAnswer<T> | { kind: "unavailable" }) => void,
  ): void {
    let open = true;
    const finish = (answer: Parameters<typeof done>[0]) => {
      if (!open) return;
      open = false;
      done(answer);
    };
    this.later(limitMs, () => finish({ kind: "unavailable" }));
    this.api.request(this.name, work, (value) => this.later(0, () => finish(value)));
  }

  /** Starts the process; a container that starts anew has no deadline, a runtime alone takes over what runs. */
  boot(adopt: boolean): void {
    this.life += 1;
    this.up = true;
    this.cluster = undefined;
    this.#busy = this.#promoting = this.#terminating = this.#keeperStops = this.#asking = this.#claimingCurrent = false;
    this.#stopping = undefined;
    this.#holderAnswer = undefined;
    this.#askedAt = Number.NEGATIVE_INFINITY;
    this.holder = new Holder(this);
    this.note(() => (adopt && this.postgres.running ? "runtime is up beside its PostgreSQL" : "container is up"));
    if (adopt && this.postgres.writable) this.holder.adopt(this.deadline && this.deadline - this.local);
    this.#look();
  }

  /** Every process of the pod ends. */
  kill(backAfterMs: number | undefined): void {
    this.life += 1;
    this.up = false;
    this.postgres.die();
    if (backAfterMs !== undefined) this.world.after(backAfterMs, () => this.#back());
  }

  /** The container's end; the next one has a launcher without memory. */
  killContainer(backAfterMs: number): void {
    this.deadline = undefined;
    this.kept = undefined;
    this.kill(backAfterMs);
  }

  killRuntime(backAfterMs: number): void {
    this.life += 1;
    this.up = false;
    this.world.after(backAfterMs, () => this.#back());
  }

  #back(): void {
    if (this.up) return;
    if (this.postgres.frozen) this.world.at(this.postgres.frozenUntil, () => this.#back());
    else this.boot(true);
  }

  setDeadline(localMs: number | undefined): void {
    if (!this.rules.enforces || localMs === undefined) {
      this.deadline = undefined;
      return;
    }
    const armed = this.local + localMs;
    this.deadline = armed;
    const late = this.world.between(0, this.launcherLateMs);
    const fire = () => {
      if (this.deadline !== armed) return;
      if (this.postgres.frozen) {
        this.world.at(this.postgres.frozenUntil, fire);
        return;
      }
      if (this.local < armed - 1) {
        // Only with a clock that stood still while the machine did.
        this.world.after((armed - this.local) / this.clock.rate, fire);
        return;
      }
      this.note(() => "launcher kills every process");
      this.deadline = undefined;
      this.kill(300);
    };
    this.world.after(localMs / this.clock.rate + late, fire);
  }

  #look(): void {
    this.later(lookMs, () => this.#look());
    if (this.local - this.#readAt >= readMs) this.#readCluster();
    this.holder.step();
    if (this.up) this.#keep();
    if (this.up) this.#reconcile();
  }

  /** Sees a Cluster; an older one than that at hand changes nothing. */
  take(cluster: SimCluster): void {
    if (cluster.version > (this.cluster?.version ?? 0)) this.cluster = cluster;
  }

  #readCluster(): void {
    this.#readAt = this.local;
    this.ask<SimCluster>(
      5_000,
      () => ({ kind: "ok", value: this.api.clusterSeenBy(this.name) }),
      (answer) => {
        if (answer.kind === "ok") this.take(answer.value);
      },
    );
  }

  /** The keeper of the right, as `RightKeeper`. */
  #keep(): void {
    const { holder } = this;
    if (!holder.right) return;
    const { timings } = holder;
    const view = { me: this.name, now: this.local, timings };
    if (!this.#asking && this.local - this.#askedAt >= 500 && this.rules.wantsRound(holder.right, view)) this.#round();
    if (holder.state.kind === "good" || this.#keeperStops || !this.rules.enforces) return;
    this.#keeperStops = true;
    this.note(() => "the right ends, PostgreSQL is stopped");
    this.stop("immediate", () => {
      this.#keeperStops = false;
      if (holder.state.kind === "good") return;
      holder.lapse();
      this.setDeadline(undefined);
    });
  }

  #round(): void {
    const { right, timings } = this.holder;
    if (!right) return;
    this.#asking = true;
    const startedAt = this.local;
    this.#askedAt = startedAt;
    const voters = votersToAsk(right, this.name);
    const grantedBy = new Set<string>();
    let open = true;
    const finish = () => {
      if (!open) return;
      open = false;
      this.#asking = false;
      this.holder.applyRound({
        startedAt,
        transitions: right.transitions,
        grantedBy: [...grantedBy],
      });
      this.note(() => `round: ${[...grantedBy].join(", ") || "nobody"} of ${voters.join(", ")}`);
    };
    this.later(timings.roundLimitMs, finish);
    for (const voter of voters) {
      const question: PromiseRequest = {
        cluster: "c",
        voter,
        holder: this.name,
        holderUID: String(this.uid),
        transitions: right.transitions,
        durationMs: this.holder.leaseTimings.leaseDurationMs,
        nonce: `${this.life}.${startedAt}`,
      };
      this.#askPeer(question, (answer) => {
        if (!this.rules.isGranted(question, answer)) return;
        grantedBy.add(voter);
        if (grantedBy.size === voters.length) finish();
      });
    }
  }

  #askPeer(question: PromiseRequest, done: (answer: PromiseAnswer) => void): void {
    const peer = this.peers.get(question.voter);
    if (!peer) return;
    this.world.send(this.name, peer.name, () => {
      if (!peer.up) return;
      peer.later(0, () => {
        const answer = peer.holder.promise(question);
        this.world.send(peer.name, this.name, () => this.later(0, () => done(answer)));
      });
    });
  }

  /** Sends another instance's manager something that is not answered. */
  tellPeer(name: string, take: (peer: Manager) => void): void {
    const peer = this.peers.get(name);
    if (!peer) return;
    this.world.send(this.name, name, () => {
      if (peer.up) peer.later(0, () => take(peer));
    });
  }

  /** Stops PostgreSQL; a second stop can only be harder. */
  stop(mode: "fast" | "immediate", done: () => void): void {
    const { postgres } = this;
    if (!postgres.running && !postgres.starting) {
      done();
      return;
    }
    this.#stopping = mode;
    const { life } = postgres;
    postgres.later(mode === "fast" ? this.world.between(100, 2_000) : this.world.between(5, 400), () => {
      if (postgres.life === life) {
        if (mode === "fast") postgres.end();
        else postgres.die();
        this.note(() => `PostgreSQL is down (${mode})`);
      }
    });
    const wait = () => {
      if (postgres.running || postgres.starting) {
        this.later(50, wait);
        return;
      }
      this.#stopping = undefined;
      done();
    };
    this.later(50, wait);
  }

  /** The container ends in order: PostgreSQL, then the lease, then everything. */
  terminate(mode: "fast" | "immediate", why: string): void {
    if (this.#terminating) return;
    this.#terminating = true;
    this.note(() => `ends: ${why}`);
    this.stop(mode, () => this.holder.release(() => this.killContainer(this.world.between(300, 3_000))));
  }

  /** A primary that is to be none: PostgreSQL, then the lease; container and process stay, with all that they remember. */
  #stepDown(why: string): void {
    if (this.#terminating) return;
    this.#terminating = true;
    this.note(() => `steps down: ${why}`);
    this.stop("fast", () =>
      this.holder.release(() => {
        this.#terminating = false;
      }),
    );
  }

  #decideRole(cluster: SimCluster): RoleDecision {
    const { postgres } = this;
    const unclear =
      postgres.isPrimaryData && cluster.target === this.name && cluster.current !== this.name && cluster.current !== "";
    const fresh =
      this.#holderAnswer && this.local - this.#holderAnswer.at < 1_000 ? this.#holderAnswer.value : undefined;
    if (unclear && !fresh)
      this.holder.askHolder((value) => {
        this.#holderAnswer = { value, at: this.local };
      });
    return this.rules.planRole({
      me: this.name,
      current: cluster.current,
      target:
        cluster.target === "pending"
          ? { kind: "pending" }
          : cluster.target === ""
            ? { kind: "none" }
            : { kind: "instance", name: cluster.target },
      replicaCluster: false,
      dataRole: postgres.isPrimaryData ? "primary" : "standby",
      rewound: false,
      rewindUnfinished: false,
      running: postgres.running || postgres.starting,
      leaseHolder: unclear ? fresh : undefined,
      timeline: postgres.timeline,
      clusterTimeline: cluster.timeline,
    });
  }

  #reconcile(): void {
    const { cluster, postgres } = this;
    if (!cluster || this.#busy || this.#terminating || this.#stopping || postgres.starting) return;
    const role = this.#decideRole(cluster);
    if (role.kind !== "wait") this.asksForPerson = false;
    else if (role.reason.includes("which of the two has the newer data")) this.asksForPerson = true;
    const keeps =
      role.kind === "primary" || role.kind === "promote" || (role.kind === "wait" && cluster.target === this.name);
    if (!keeps && !this.#promoting && !postgres.writable) this.holder.standDown();
    if (!postgres.running) {
      this.#promoting = false;
      this.#initialize(cluster, role);
      return;
    }
    if (this.#promoting) {
      if (postgres.isPrimaryData) this.#promoting = false;
      else if (role.kind === "standby" || role.kind === "stop") this.terminate("fast", "the promotion is not wanted");
      return;
    }
    switch (role.kind) {
      case "stop":
        this.#stepDown(role.reason);
        return;
      case "promote":
        this.#promote(cluster, role.waitForReceiver);
        return;
      case "primary":
        this.holder.want();
        if (role.claimCurrent && this.holder.held) this.#claimCurrent(cluster);
        else if (this.#synchronous === "some") this.#recordQuorum();
        return;
      default:
        return;
    }
  }

  #initialize(cluster: SimCluster, role: RoleDecision): void {
    switch (role.kind) {
      case "primary":
        this.holder.want();
        if (!this.holder.held && this.rules.planStart === realStart) return;
        if (role.claimCurrent && cluster.current !== this.name) {
          this.#claimCurrent(cluster);
          if (this.rules.planStart === realStart) return;
        }
        this.#start();
        return;
      case "promote":
      case "standby":
        this.#start();
        return;
      case "demote":
        this.#rewind(cluster.current);
        return;
      default:
        return;
    }
  }

  #start(): void {
    const target = this.cluster?.target ?? "";
    const decision = this.rules.planStart({
      me: this.name,
      target: target === "pending" ? { kind: "pending" } : { kind: "instance", name: target },
      dataRole: this.postgres.isPrimaryData ? "primary" : "standby",
      leaseHeld: this.holder.held,
    });
    if (decision.kind === "refuse") return;
    this.note(() => "starts PostgreSQL");
    this.postgres.start(() => undefined);
  }

  #rewind(current: string): void {
    const source = this.peers.get(current)?.postgres;
    this.#busy = true;
    this.later(this.world.between(300, 2_000), () => {
      this.#busy = false;
      if (!source?.writable || source.frozen || !this.world.isUp(this.name, source.name)) return;
      this.note(() => `rewound to ${source.name}`);
      this.postgres.rewindTo(source);
    });
  }

  #promote(cluster: SimCluster, waitForReceiver: boolean): void {
    this.holder.want();
    if (!this.holder.held) return;
    if (waitForReceiver && this.postgres.receiving) return;
    if (cluster.target !== this.name) return;
    if (waitForReceiver && this.#synchronous) this.#askBeforePromotion(cluster, 1);
    else this.#promoteNow("");
  }

  #promoteNow(reason: string): void {
    this.#promoting = true;
    this.note(() => `promotes ${reason}`);
    this.postgres.promote();
  }

  /** The others tell how far they have come, now that nobody acknowledges anything any more. */
  #askBeforePromotion(cluster: SimCluster, attempt: number): void {
    const tenure = this.holder.right?.transitions;
    const positions = new Map<string, bigint>();
    const peers = [...this.peers.keys()].filter((name) => name !== cluster.current);
    let open = true;
    this.#busy = true;
    const conclude = () => {
      if (!open) return;
      open = false;
      this.#busy = false;
      const isStill =
        this.holder.held && this.holder.right?.transitions === tenure && this.cluster?.target === this.name;
      if (!isStill || !this.postgres.running || this.#terminating || this.#stopping) return;
      const { quorum } = this.api;
      const decision = this.rules.planPromotion({
        me: this.name,
        former: cluster.current,
        position: BigInt(this.postgres.wal.length),
        formerEnd: this.holder.formerEnd(cluster.current),
        peers: peers.map((name) => ({ name, position: positions.get(name) })),
        quorum: this.#synchronous === "some" ? quorum && { ...quorumStatus, ...quorum } : "notAsked",
      });
      if (decision.kind === "promote") this.#promoteNow(decision.reason);
      else if (decision.final || attempt === 3) this.#declineTarget(decision.reason);
      else this.#askBeforePromotion(cluster, attempt + 1);
    };
    this.later(1_000, conclude);
    for (const name of peers) {
      this.tellPeer(name, (peer) => {
        const { postgres } = peer;
        if (!postgres.running || postgres.isPrimaryData || postgres.frozen) return;
        const position = BigInt(postgres.wal.length);
        peer.tellPeer(this.name, (me) => {
          if (me !== this || !open) return;
          positions.set(name, position);
          if (positions.size === peers.length) conclude();
        });
      });
    }
    if (peers.length === 0) conclude();
  }

  #declineTarget(reason: string): void {
    this.note(() => `leaves the promotion to others: ${reason}`);
    this.#busy = true;
    this.ask<SimCluster>(
      5_000,
      () =>
        this.api.cluster.target === this.name
          ? this.api.writeStatus(this.name, undefined, { target: "pending", targetAt: this.world.now })
          : { kind: "ok", value: this.api.cluster },
      (answer) => {
        this.#busy = false;
        if (answer.kind === "ok") this.take(answer.value);
      },
    );
  }

  #claimCurrent(cluster: SimCluster): void {
    if (this.#claimingCurrent) return;
    this.#claimingCurrent = true;
    this.ask<SimCluster>(
      5_000,
      () => this.api.writeStatus(this.name, cluster.version, { current: this.name }),
      (answer) => {
        this.#claimingCurrent = false;
        if (answer.kind === "ok") this.take(answer.value);
        if (answer.kind === "conflict") this.#readCluster();
      },
    );
  }

  /** Tells the operator whom commits wait for. */
  #recordQuorum(): void {
    if (this.local - this.#quorumAt < 1_000) return;
    this.#quorumAt = this.local;
    const quorum = { primary: this.name, standbyNames: [...this.peers.keys()] };
    this.ask<SimQuorum>(
      5_000,
      () => {
        const { current, target } = this.api.cluster;
        if (current === this.name && target === this.name) this.api.quorum = quorum;
        return { kind: "ok", value: quorum };
      },
      () => undefined,
    );
  }

  restartAfterLoss(): void {
    this.terminate("immediate", "another instance took the lease");
  }
}
