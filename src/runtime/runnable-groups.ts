import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import { type Runnable, StopReason } from "./runnable.ts";

/** In the order of starting; stopping goes backwards. */
export const groupNames = ["servers", "caches", "others", "leader"] as const;
export type GroupName = (typeof groupNames)[number];

export interface RunnableGroupsOptions {
  logger: Logger;
  clock: Clock;
  /** Bound for stopping everything; what still runs then is named and left behind. @default 30000 */
  stopTimeoutMs?: number;
  /** Bound for one group to become ready; absent = none. */
  startTimeoutMs?: number;
}

/** The parts of a program, started and stopped in order. */
export interface RunnableGroups {
  /** Throws once stopping has begun; a part added to a started group starts at once. */
  add(group: GroupName, runnable: Runnable): void;
  /** Starts the leader-only parts; to be called by leader election, or at once where there is none. */
  startLeaderWork(): void;
  /**
   * Starts servers, caches and others, each group when the one before is ready, and works until the signal aborts or a part
   * fails; then stops all in reverse order within the bound. Rejects with the first failure.
   */
  run(signal: AbortSignal): Promise<void>;
}

/** Creates the groups of one program. */
export function createRunnableGroups(options: RunnableGroupsOptions): RunnableGroups {
  return new Groups(options);
}

/** Time for each further group once the bound has passed. */
const lateGroupMs = 1_000;

interface Part {
  runnable: Runnable;
  ended?: Promise<void>;
}

interface Group {
  parts: Part[];
  started: boolean;
  readonly stop: AbortController;
}

class Groups implements RunnableGroups {
  readonly #options: RunnableGroupsOptions;
  readonly #groups = new Map<GroupName, Group>();
  readonly #failed = new AbortController();
  #stopping = false;
  #leaderWanted = false;

  constructor(options: RunnableGroupsOptions) {
    this.#options = options;
    for (const name of groupNames) this.#groups.set(name, { parts: [], started: false, stop: new AbortController() });
  }

  add(name: GroupName, runnable: Runnable): void {
    if (this.#stopping) throw new Error(`cannot add ${runnable.name} to ${name}: the program is stopping`);
    const group = this.#group(name);
    const part: Part = { runnable };
    group.parts.push(part);
    if (group.started) this.#start(group, part);
  }

  startLeaderWork(): void {
    this.#leaderWanted = true;
    const group = this.#group("leader");
    // Before the other groups are up the wish is only noted.
    if (this.#stopping || group.started || !this.#group("others").started) return;
    group.started = true;
    for (const part of group.parts) this.#start(group, part);
  }

  async run(signal: AbortSignal): Promise<void> {
    const stop = AbortSignal.any([signal, this.#failed.signal]);
    try {
      for (const name of ["servers", "caches", "others"] as const) await this.#startGroup(name, stop);
      if (this.#leaderWanted) this.startLeaderWork();
      await aborted(stop);
    } catch (error) {
      if (!stop.aborted) this.#failed.abort(error);
    }
    await this.#stop();
    if (this.#failed.signal.aborted) throw this.#failed.signal.reason;
  }

  async #startGroup(name: GroupName, stop: AbortSignal): Promise<void> {
    stop.throwIfAborted();
    const group = this.#group(name);
    group.started = true;
    for (const part of group.parts) this.#start(group, part);
    const ready = Promise.all(group.parts.map((part) => part.runnable.ready?.(stop)));
    const { startTimeoutMs } = this.#options;
    const bound = startTimeoutMs === undefined ? aborted(stop) : this.#bound(startTimeoutMs, stop);
    const late = bound.then(() => {
      stop.throwIfAborted();
      throw new Error(`${name} were not ready within ${startTimeoutMs} ms`);
    });
    await Promise.race([ready, late]);
  }

  #start(group: Group, part: Part): void {
    const { name } = part.runnable;
    const run = async () => part.runnable.run(group.stop.signal);
    part.ended = run().catch((error: unknown) => {
      if (group.stop.signal.aborted) {
        // Reports of the stop itself are expected; anything else deserves a line.
        if (error !== group.stop.signal.reason)
          this.#options.logger.warning("Part failed while stopping", { part: name, error });
        return;
      }
      this.#options.logger.error("Part failed, stopping the program", { part: name, error });
      this.#failed.abort(error ?? new Error(`${name} failed`));
    });
  }

  /** Never rejects and always ends within the bound (and a little for the rest), even when a part ignores its signal. */
  async #stop(): Promise<void> {
    this.#stopping = true;
    const timer = new AbortController();
    let bound = this.#bound(this.#options.stopTimeoutMs ?? 30_000, timer.signal);
    const leftBehind: string[] = [];
    for (const name of [...groupNames].reverse()) {
      const group = this.#group(name);
      group.stop.abort(new StopReason([...leftBehind]));
      const pending = new Set(group.parts.filter((part) => part.ended));
      const all = Promise.all([...pending].map((part) => part.ended?.then(() => pending.delete(part))));
      if ((await Promise.race([all, bound.then(() => "late" as const)])) !== "late") continue;
      const unfinished = [...pending].map((part) => part.runnable.name);
      leftBehind.push(...unfinished);
      this.#options.logger.error("Parts did not stop in time and are left behind", { group: name, unfinished });
      // The other groups are innocent and mostly quick.
      bound = this.#bound(lateGroupMs, timer.signal);
    }
    timer.abort();
  }

  /** Resolves at the bound or when the signal aborts, whichever is first. */
  #bound(ms: number, signal: AbortSignal): Promise<void> {
    return this.#options.clock.sleep(ms, signal).catch(() => undefined);
  }

  #group(name: GroupName): Group {
    return this.#groups.get(name) as Group;
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
