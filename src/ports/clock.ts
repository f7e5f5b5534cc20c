/** Time as the programs see it. Tests and the simulation bring their own. */
export interface Clock {
  /** Wall clock, milliseconds since the epoch. */
  now(): number;
  /** Monotonic milliseconds, for durations and deadlines. */
  monotonicMs(): number;
  /** Resolves after the delay; rejects with the signal's reason when aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** Source of random values. */
export interface Random {
  bytes(length: number): Uint8Array;
  /** A float in [0, 1), for jitter. */
  float(): number;
}
