import type { Oracle } from "./oracle.ts";
import type { World } from "./world.ts";

/** A standby gives a silent sender up after this, in milliseconds (`wal_receiver_timeout`). */
const receiverTimeoutMs = 5_000;

/** A machine that stands still for longer than this is outside of what a lease can promise (assumption in the safety page). */
export const toleratedFreezeMs = 4_000;
/** When a machine goes on, everything of it that the launcher is to kill may do something for so long. */
const thawMs = 100;

/** PostgreSQL of one instance: its data, its processes, its replication. WAL is the list of writes, named by number. */
export class Postgres {
  running = false;
  starting = false;
  /** By files: without `standby.signal`. */
  isPrimaryData = false;
  timeline = 1;
  wal: number[] = [];
  /** Grows with each start, so that what belongs to an earlier life is known. */
  life = 0;
  /** A machine that stands still as a whole. */
  frozenUntil = 0;
  #frozenFrom = Number.NaN;
  #sleptBefore = 0;
  /** Whom it receives from. */
  upstream: { from: Postgres; life: number; heardAt: number } | undefined;
  /** Length of the WAL of a primary that was stopped in order. */
  endedAt: number | undefined;
  #pending: { id: number; index: number }[] = [];
  #acked = 0;
  lastAckAt = Number.NEGATIVE_INFINITY;
  readonly name: string;
  readonly #world: World;
  readonly #oracle: Oracle;

  constructor(world: World, oracle: Oracle, name: string) {
    this.#world = world;
    this.#oracle = oracle;
    this.name = name;
  }

  get frozen(): boolean {
    return this.#world.now < this.frozenUntil;
  }

  freeze(until: number): void {
    if (!this.frozen) {
      this.#sleptBefore = this.sleptMs;
      this.#frozenFrom = this.#world.now;
    }
    this.frozenUntil = Math.max(this.frozenUntil, until);
  }

  /** For how long the machine stood still in all, in milliseconds. */
  get sleptMs(): number {
    const last = Math.min(this.#world.now, this.frozenUntil) - this.#frozenFrom;
    return this.#sleptBefore + (Number.isNaN(last) ? 0 : last);
  }

  /** Stands still for longer than a lease allows for, or has done so until just now. */
  get isBeyondLease(): boolean {
    const { now } = this.#world;
    return Math.min(now, this.frozenUntil) - this.#frozenFrom >= toleratedFreezeMs && now <= this.frozenUntil + thawMs;
  }

  /** Takes writes now. */
  get writable(): boolean {
    return this.running && this.isPrimaryData;
  }

  get receiving(): boolean {
    return this.running && !this.isPrimaryData && this.upstream !== undefined;
  }

  /** Runs something of PostgreSQL's own, once the machine goes on. */
  later(ms: number, run: () => void): void {
    const { life } = this;
    const go = () => {
      if (life !== this.life) return;
      if (this.frozen) this.#world.at(this.frozenUntil, go);
      else run();
    };
    this.#world.after(ms, go);
  }

  start(done: () => void): void {
    this.starting = true;
    this.endedAt = undefined;
    this.life += 1;
    this.later(this.#world.between(200, 2_000), () => {
      this.starting = false;
      this.running = true;
      this.upstream = undefined;
      this.#world.note(() => `${this.name}: PostgreSQL is up as ${this.isPrimaryData ? "primary" : "standby"}`);
      if (this.isPrimaryData) this.#oracle.becamePrimary(this);
      done();
    });
  }

  /** The end in order: a primary waits until the standbys that it still reaches have everything. */
  end(): void {
    if (this.writable && !this.frozen) {
      for (const server of this.#oracle.servers) if (server.upstream?.from === this) server.stream(this);
      this.endedAt = this.wal.length;
    }
    this.die();
  }

  /** The end of every process. */
  die(): void {
    this.life += 1;
    this.running = this.starting = false;
    this.upstream = undefined;
    this.#pending = [];
    this.#acked = this.wal.length;
  }

  promote(): void {
    this.later(this.#world.between(20, 1_500), () => {
      if (!this.running || this.isPrimaryData) return;
      this.isPrimaryData = true;
      this.upstream = undefined;
      this.timeline += 1;
      this.#acked = this.wal.length;
      this.#pending = [];
      this.#world.note(() => `${this.name}: promoted, timeline ${this.timeline}`);
      this.#oracle.becamePrimary(this);
    });
  }

  /** A client's write; it is acknowledged when the standbys that must have it do. */
  write(id: number): void {
    if (!this.writable || this.frozen) return;
    this.wal.push(id);
    this.#pending.push({ id, index: this.wal.length });
    this.acknowledge();
  }

  acknowledge(): void {
    if (!this.writable || this.frozen || this.#pending.length === 0) return;
    const safe = this.#oracle.safeLength(this);
    while (this.#pending.length > 0 && (this.#pending[0]?.index ?? 0) <= safe) {
      const write = this.#pending.shift();
      this.lastAckAt = this.#world.now;
      if (write) this.#oracle.acknowledged(this, write.id);
    }
  }

  /** One look of a standby at its sender. */
  stream(service: Postgres | undefined): void {
    if (!this.running || this.isPrimaryData || this.frozen) return;
    const { upstream } = this;
    if (upstream) {
      const { from, life } = upstream;
      const line = this.#world.isUp(this.name, from.name);
      if (line && !from.frozen && (from.life !== life || !from.running)) this.upstream = undefined;
      else if (line && !from.frozen) this.#receive(from);
      else if (this.#world.now - upstream.heardAt > receiverTimeoutMs) this.upstream = undefined;
      return;
    }
    if (!service?.writable || service === this || service.frozen) return;
    if (!this.#world.isUp(this.name, service.name) || !this.isPrefixOf(service)) return;
    this.upstream = { from: service, life: service.life, heardAt: this.#world.now };
  }

  #receive(from: Postgres): void {
    if (this.upstream) this.upstream.heardAt = this.#world.now;
    for (let index = this.wal.length; index < from.wal.length; index += 1) this.wal.push(from.wal[index] as number);
    if (from.timeline > this.timeline) this.timeline = from.timeline;
    from.acknowledge();
  }

  isPrefixOf(other: Postgres): boolean {
    const { length } = this.wal;
    return length === 0 || (length <= other.wal.length && this.wal[length - 1] === other.wal[length - 1]);
  }

  /** Throws away what the other one does not have and takes over the rest. */
  rewindTo(other: Postgres): void {
    this.wal = [...other.wal];
    this.timeline = other.timeline;
    this.isPrimaryData = false;
    this.#acked = this.wal.length;
  }

  get acked(): number {
    return this.#acked;
  }
}
