import { setTimeout as delay } from "node:timers/promises";

export interface WaitOptions {
  timeoutMs: number;
  /** Pause between two looks, in milliseconds. @default 100 */
  everyMs?: number;
  /** Ends the wait early with this reason, for example because the process waited for has ended. */
  failure?: () => string | undefined;
}

/** Looks until the condition holds; rejects naming what was waited for. */
export async function waitFor(what: string, condition: () => Promise<boolean>, options: WaitOptions): Promise<void> {
  const end = Date.now() + options.timeoutMs;
  while (!(await condition())) {
    const failure = options.failure?.();
    if (failure !== undefined) throw new Error(`${what}: ${failure}`);
    if (Date.now() > end) throw new Error(`${what}: not reached within ${Math.round(options.timeoutMs / 1000)} s`);
    await delay(options.everyMs ?? 100);
  }
}
