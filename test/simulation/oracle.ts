import type { Postgres } from "./postgres.ts";
import type { World } from "./world.ts";

/** What must never happen, and what did. */
export class Violation extends Error {}

/** `some`: one of the standbys must have it, and no failover happens without the failover quorum. */
export type Durability = "none" | "some" | "all";

/** Sees every acknowledged write and every primary, and says what must not be. */
export class Oracle {
  readonly servers: Postgres[] = [];
  readonly acked: number[] = [];
  /** How many standbys must have a write before it is acknowledged. */
  readonly durability: Durability;
  /** Whole machines stand still: then only what is promised for that is looked at. */
  readonly freezes: boolean;
  readonly #world: World;

  constructor(world: World, durability: Durability, freezes: boolean) {
    this.#world = world;
    this.durability = durability;
    this.freezes = freezes;
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
    if (this.freezes) return;
    const other = this.servers.find((it) => it !== primary && it.writable);
    if (other) throw new Violation(`${primary.name} ${what} while ${other.name} takes writes too`);
  }

  acknowledged(primary: Postgres, id: number): void {
    this.#checkAlone(primary, `acknowledges write ${id}`);
    this.acked.push(id);
    this.#world.note(() => `${primary.name}: acknowledged write ${id}`);
  }

  becamePrimary(primary: Postgres): void {
    this.#checkAlone(primary, "becomes a primary");
    this.checkNothingLost(primary);
  }

  /** With synchronous replication that is required, a primary has every write that was ever acknowledged. */
  checkNothingLost(primary: Postgres): void {
    if (this.durability === "none") return;
    const has = new Set(primary.wal);
    const lost = this.acked.find((id) => !has.has(id));
    if (lost !== undefined) throw new Violation(`${primary.name} is primary without the acknowledged write ${lost}`);
  }
}
