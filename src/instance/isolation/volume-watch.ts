import { planVolumeProbe } from "../../plan/instance/volume-probe.ts";
import type { PostmasterHost } from "../../ports/postmaster-host.ts";
import { within } from "../../runtime/within.ts";
import type { InstanceContext } from "../instance-context.ts";

/**
 * Why the volumes must take writes: a server runs, the right to write is held, or it is about to be taken; or somebody looks
 * whether they do so again.
 */
export type Stake = "server" | "right" | "claim" | "recovery";

/** How long a first sign of life is waited for before the right is left to others, in milliseconds. */
const firstSignMs = 5_000;
/** Pause between looks at volumes that took no writes. */
const recoveryPauseMs = 2_000;

type WatchContext = Pick<InstanceContext, "clock" | "files" | "logger" | "settings" | "state">;

/**
 * Has the launcher probe the volumes for as long as anything is at stake: a disk that hangs would keep a primary alive that
 * can't write, or leave the Lease to a manager that renews it and can't start PostgreSQL.
 */
export class VolumeWatch {
  readonly #context: WatchContext;
  readonly #host: Pick<PostmasterHost, "probeVolumes">;
  readonly #stakes = new Set<Stake>();
  /** The one volume that is looked at, if not all are. */
  #only: string | undefined;
  /** A file of the kernel's: it can be read however the disks are. What a pod mounts does not change. */
  #mounts: Promise<string | undefined> | undefined;
  /** What the launcher was asked for last. */
  #asked: { key: string; folders: readonly string[]; limitMs: number; alive: Promise<string | null> } | undefined;

  constructor(context: WatchContext, host: Pick<PostmasterHost, "probeVolumes">) {
    this.#context = context;
    this.#host = host;
  }

  /** Says that something is at stake, or no longer; resolves when the launcher was told. */
  stake(what: Stake, isAtStake: boolean): Promise<void> {
    if (isAtStake) this.#stakes.add(what);
    else this.#stakes.delete(what);
    return this.follow();
  }

  /** Brings what the launcher does in line with the Cluster and what is at stake. */
  async follow(): Promise<void> {
    const { logger } = this.#context;
    const plan = await this.#plan();
    const { limitMs } = this.#stakes.size > 0 ? plan : { limitMs: 0 };
    const folders = limitMs > 0 ? plan.folders.filter((it) => this.#only === undefined || it === this.#only) : [];
    const key = JSON.stringify(limitMs > 0 ? [limitMs, folders] : []);
    if (key === this.#asked?.key) return;
    const alive = this.#host.probeVolumes(folders, limitMs).then(
      () => null,
      (error: Error) => `the launcher does not tell whether ${folders.join(", ")} take writes: ${error.message}`,
    );
    this.#asked = { key, folders, limitMs, alive };
    logger.debug("The launcher is to probe the volumes", { folders, limitMs });
  }

  async #plan(): Promise<{ folders: string[]; limitMs: number }> {
    const { files, settings, state } = this.#context;
    this.#mounts ??= files.read("/proc/self/mountinfo").catch(() => undefined);
    return planVolumeProbe(state.cluster, settings, await this.#mounts);
  }

  /** Notes that everything was killed because a volume took no writes: until {@link recover} has ended nothing may touch them. */
  async noteKill(): Promise<void> {
    const { folders } = await this.#plan();
    this.#context.state.silentVolumes = { folders, sinceMs: this.#context.clock.monotonicMs() };
  }

  /** Looks until every volume takes writes again, or the signal comes. */
  async recover(signal: AbortSignal): Promise<void> {
    const { clock, state, logger } = this.#context;
    while (state.silentVolumes && !signal.aborted) {
      const folders = await this.#findSilent();
      if (folders.length === 0) {
        logger.info("Every volume takes writes again");
        state.silentVolumes = undefined;
        return;
      }
      state.silentVolumes = { ...state.silentVolumes, folders };
      await clock.sleep(recoveryPauseMs, signal).catch(() => undefined);
    }
  }

  /** The volumes that take no write now, each asked for by itself: the launcher answers once all that it is asked for do. */
  async #findSilent(): Promise<string[]> {
    const silent: string[] = [];
    this.#stakes.add("recovery");
    try {
      for (const folder of (await this.#plan()).folders) {
        this.#only = folder;
        await this.follow();
        if ((await this.silence()) !== null) silent.push(folder);
      }
    } finally {
      this.#only = undefined;
      await this.stake("recovery", false);
    }
    return silent;
  }

  /** Why the right to write is better left to others; `null` when every volume has taken a write since it is probed. */
  async silence(): Promise<string | null> {
    const asked = this.#asked;
    if (!asked || asked.limitMs === 0) return null;
    // Shorter than the launcher's own limit: nothing is to be killed where nothing is held yet.
    const limitMs = Math.min(firstSignMs, asked.limitMs / 2);
    const tooLong = `no write to ${asked.folders.join(" or ")} came back within ${limitMs / 1_000} s`;
    return within(this.#context.clock, limitMs, asked.alive, tooLong);
  }
}
