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
