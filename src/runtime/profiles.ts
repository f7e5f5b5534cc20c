import { type HeapProfiler, type Profiler, Session } from "node:inspector";
import type { Clock } from "../ports/clock.ts";
import { encodeCpuProfile, encodeHeapProfile } from "./profile-format.ts";

/** Time between two looks at the stack, as Go's profiler has it. */
const cpuIntervalMicros = 10_000;
/** Bytes between two allocations that are noted, on average, as Go's profiler has it. */
const heapIntervalBytes = 512 * 1024;

/** A CPU profile is being taken already. */
export class ProfilerBusyError extends Error {
  override readonly name = "ProfilerBusyError";
}

/** Profiles of this process by V8's own profilers: of its JavaScript thread and of V8's heap, not of other threads and not of buffers. */
export class Profiles {
  readonly #clock: Clock;
  readonly #session = new Session();
  #busy = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** From here on allocations are noted, so that a heap profile can tell who made what is still in use. */
  async open(): Promise<void> {
    const session = this.#session;
    session.connect();
    await answered((done) => session.post("HeapProfiler.startSampling", { samplingInterval: heapIntervalBytes }, done));
  }

  close(): void {
    this.#session.disconnect();
  }

  /** What the processor is used for from now on; rejects with the signal's reason when aborted. */
  async takeCpu(durationMs: number, signal: AbortSignal): Promise<Uint8Array> {
    if (this.#busy) throw new ProfilerBusyError("another CPU profile is being taken: ask again when that is done");
    this.#busy = true;
    try {
      const startedAt = this.#clock.now();
      const profile = await this.#record(durationMs, signal);
      return await encodeCpuProfile(profile, { ...this.#facts(startedAt), intervalMicros: cpuIntervalMicros });
    } finally {
      this.#busy = false;
    }
  }

  /** What is in use now; `collectFirst` has garbage removed before. */
  async takeHeap(options: { collectFirst: boolean }): Promise<Uint8Array> {
    const session = this.#session;
    if (options.collectFirst) await answered((done) => session.post("HeapProfiler.collectGarbage", done));
    const { profile } = await answered<HeapProfiler.GetSamplingProfileReturnType>((done) =>
      session.post("HeapProfiler.getSamplingProfile", done),
    );
    return encodeHeapProfile(profile, { ...this.#facts(this.#clock.now()), intervalBytes: heapIntervalBytes });
  }

  async #record(durationMs: number, signal: AbortSignal): Promise<Profiler.Profile> {
    const session = this.#session;
    await answered((done) => session.post("Profiler.enable", done));
    try {
      await answered((done) => session.post("Profiler.setSamplingInterval", { interval: cpuIntervalMicros }, done));
      await answered((done) => session.post("Profiler.start", done));
      await this.#clock.sleep(durationMs, signal);
      const { profile } = await answered<Profiler.StopReturnType>((done) => session.post("Profiler.stop", done));
      return profile;
    } finally {
      // Ends a recording that was given up, too.
      await answered((done) => session.post("Profiler.disable", done));
    }
  }

  #facts(startedAt: number) {
    return { program: process.argv[1] ?? process.execPath, startedAt };
  }
}

function answered<T = void>(ask: (done: (error: Error | null, result?: T) => void) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    ask((error, result) => (error ? reject(error) : resolve(result as T)));
  });
}
