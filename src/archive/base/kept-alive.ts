import type { Clock } from "../../ports/clock.ts";
import type { SqlSession } from "../../ports/sql-session.ts";
import { BaseError } from "./base-error.ts";

/** Asks a session for a sign of life from time to time. When none comes, the backup is void and all its work is ended. */
export class KeptAlive {
  readonly #stopped = new AbortController();
  readonly #loop: Promise<void>;
  #lost: BaseError | undefined;

  constructor(session: SqlSession, clock: Clock, everyMs: number, work: AbortController) {
    this.#loop = everyMs > 0 ? this.#run(session, clock, everyMs, work) : Promise.resolve();
  }

  /** Why the session is lost. */
  get lost(): BaseError | undefined {
    return this.#lost;
  }

  stop(): Promise<void> {
    this.#stopped.abort();
    return this.#loop;
  }

  async #run(session: SqlSession, clock: Clock, everyMs: number, work: AbortController): Promise<void> {
    for (;;) {
      try {
        await clock.sleep(everyMs, this.#stopped.signal);
      } catch {
        return;
      }
      try {
        await session.query("SELECT 1");
      } catch (error) {
        if (this.#stopped.signal.aborted || work.signal.aborted) return;
        const reason = error instanceof Error ? error.message : String(error);
        this.#lost = new BaseError("postgres", `PostgreSQL's session was lost during the copy: ${reason}`, error);
        work.abort(this.#lost);
        return;
      }
    }
  }
}
