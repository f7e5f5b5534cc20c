/** A part of a program that works until it is told to stop. */
export interface Runnable {
  readonly name: string;
  /**
   * Works until the signal aborts, then resolves. Ending earlier by resolving means that the part is finished for good;
   * a rejection stops the whole program.
   */
  run(signal: AbortSignal): Promise<void>;
  /** Resolves when parts of later groups may rely on this one. */
  ready?(signal: AbortSignal): Promise<void>;
}

/** Why a part is told to stop, as its signal's reason. */
export class StopReason extends Error {
  override readonly name = "StopReason";
  /** Parts of later groups that were still running when they should have ended. */
  readonly unfinished: readonly string[];

  constructor(unfinished: readonly string[] = []) {
    super("the program is stopping");
    this.unfinished = unfinished;
  }
}
