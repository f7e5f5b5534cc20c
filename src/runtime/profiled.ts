import type { ProfilerOptions } from "./profiler.ts";

/** Does work, with a profiler beside it where one is wanted; what that needs is loaded only then. */
export async function profiled<T>(options: ProfilerOptions | undefined, work: () => Promise<T>): Promise<T> {
  if (!options) return work();
  const { withProfiler } = await import("./profiler.ts");
  return withProfiler(options, work);
}
