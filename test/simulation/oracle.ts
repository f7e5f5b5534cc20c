import type { Postgres } from "./postgres.ts";
import type { World } from "./world.ts";

/** What must never happen, and what did. */
export class Violation extends Error {}

/** `some`: one of the standbys must have it, and no failover happens without the failover quorum. */
export type Durability = "none" | "some" | "all";

/** What is outside of the assumptions; there only the promises that hold all the same are looked at. */
export interface Outside {
  /** Clocks run more differently than is assumed: a lease promises nothing then. */
  isSkewed: boolean;
  /** A machine that stood still for too long may do something in the moment in which it goes on. */
  forgivesFreezes: boolean;
}

/** Sees every acknowledged write and every primary, and says what must not be. */
export class Oracle {
  readonly servers: Postgres[] = [];
  readonly acked: number[] = [];
  /** How many standbys must have a write before it is acknowledged. */
  readonly durability: Durability;
  readonly #outside: Outside;
  /** Acknowledged in the moment after a machine stood still for too long: kept only if all standbys are waited for. */
  readonly #doubtful = new Set<number>();
  readonly #checkedLives = new Map<string, number>();
  readonly #world: World;

  constructor(world: World, durability: Durability, outside: Outside) {
    this.#world = world;
    this.durability = durability;
    this.#outside = outside;
  }

  #isForgiven(server: Postgres): boolean {
    return this.#outside.forgivesFreezes && server.isBeyondLease;
  }

  /** Length of WAL that the standbys have which must have it. */
  safeLength(primary: Postgres): number {
    if (this.durability === "none") return primary.wal.length;
    const confirmed = this.servers
      .filter((it) => it !== primary)
      .map((it) =>
        it.upstream?.from === primary && it.upstream.life === primary.life && it.running ? it.wal.length : 0,
      );
    const safe = this.durability === "all" ? Math.min(...confirmed) : Math.max(...confirmed);
    return Math.min(primary.wal.length, safe);
  }

  #checkAlone(primary: Postgres, what: string): void {
    if (this.#outside.isSkewed) return;
    const other = this.servers.find((it) => it !== primary && it.writable);
    // A machine that goes on after too long a time finds a successor, and is put an end to at once.
    if (other && !this.#isForgiven(primary) && !this.#isForgiven(other))
      throw new Violation(`${primary.name} ${what} while ${other.name} takes writes too`);
  }

  acknowledged(primary: Postgres, id: number): void {
    this.#checkAlone(primary, `acknowledges write ${id}`);
    this.acked.push(id);
    if (this.#isForgiven(primary)) this.#doubtful.add(id);
    else this.#checkOnce(primary);
    this.#world.note(() => `${primary.name}: acknowledged write ${id}`);
  }

  becamePrimary(primary: Postgres): void {
    this.#checkAlone(primary, "becomes a primary");
    this.checkNothingLost(primary);
  }

  /** Who became primary as its machine went on is looked at once it acknowledges something later. */
  #checkOnce(primary: Postgres): void {
    if (this.#checkedLives.get(primary.name) === primary.life) return;
    this.#checkedLives.set(primary.name, primary.life);
    this.checkNothingLost(primary);
  }

  /** With synchronous replication that is required, a primary has every write that was ever acknowledged. */
  checkNothingLost(primary: Postgres): void {
    if (this.durability === "none") return;
    const isAll = this.durability === "all";
    if (!isAll && (this.#outside.isSkewed || this.#isForgiven(primary))) return;
    const has = new Set(primary.wal);
    const lost = this.acked.find((id) => !has.has(id) && (isAll || !this.#doubtful.has(id)));
    if (lost !== undefined) throw new Violation(`${primary.name} is primary without the acknowledged write ${lost}`);
  }
}
