import { gunzipSync } from "node:zlib";
import { Profile } from "pprof-format";

/** What a profile in pprof's format says, in words. */
export interface ReadProfile {
  /** For example `cpu/nanoseconds`. */
  types: string[];
  /** Sum of all samples, by type. */
  totals: Record<string, number>;
  /** Functions on the paths of samples, as `name file`. */
  functions: string[];
  /** The paths of the samples, each from the function that was measured up to its last caller, with its values. */
  paths: { names: string[]; values: number[] }[];
  periodType: string;
  period: number;
  durationNanos: number;
}

/** Reads a gzipped profile; fails on what no reader could follow. */
export function readProfile(bytes: Uint8Array): ReadProfile {
  const profile = Profile.decode(gunzipSync(bytes));
  const text = (index: number | bigint | undefined) => {
    const found = profile.stringTable.strings[Number(index ?? 0)];
    if (found === undefined) throw new Error(`the profile has no string ${index}`);
    return found;
  };
  const typeOf = (type: { type: number | bigint; unit: number | bigint }) => `${text(type.type)}/${text(type.unit)}`;
  const functions = new Map(profile.function.map((it) => [Number(it.id), it]));
  const locations = new Map(profile.location.map((it) => [Number(it.id), it]));
  const functionAt = (location: number | bigint) => {
    const found = functions.get(Number(locations.get(Number(location))?.line[0]?.functionId));
    if (!found) throw new Error(`the profile knows no function at location ${location}`);
    return found;
  };
  const paths = profile.sample.map((it) => ({
    names: it.locationId.map((location) => text(functionAt(location).name)),
    values: it.value.map(Number),
  }));
  const types = profile.sampleType.map(typeOf);
  const totals = types.map((type, index) => [type, paths.reduce((sum, it) => sum + (it.values[index] ?? 0), 0)]);
  const described = profile.sample.flatMap((it) => it.locationId.map(functionAt));
  return {
    types,
    totals: Object.fromEntries(totals),
    functions: [...new Set(described.map((it) => `${text(it.name)} ${text(it.filename)}`))],
    paths,
    periodType: profile.periodType ? typeOf(profile.periodType) : "",
    period: Number(profile.period),
    durationNanos: Number(profile.durationNanos),
  };
}

/** Asks a profiler for a CPU profile of `seconds`, and keeps the program busy meanwhile. */
export async function takeBusyProfile(port: number, seconds: number): Promise<ReadProfile> {
  const url = `http://127.0.0.1:${port}/debug/pprof`;
  let done = false;
  const busy = async () => {
    while (!done) await takeHeapProfile(port);
  };
  const work = busy();
  try {
    const answer = await fetch(`${url}/profile?seconds=${seconds}`);
    if (answer.status !== 200) throw new Error(`${answer.status}: ${await answer.text()}`);
    return readProfile(new Uint8Array(await answer.arrayBuffer()));
  } finally {
    done = true;
    await work;
  }
}

/** Asks a profiler what is in use. */
export async function takeHeapProfile(port: number): Promise<ReadProfile> {
  const answer = await fetch(`http://127.0.0.1:${port}/debug/pprof/heap`);
  if (answer.status !== 200) throw new Error(`${answer.status}: ${await answer.text()}`);
  return readProfile(new Uint8Array(await answer.arrayBuffer()));
}

/** Keeps a profiler busy until the signal aborts or the program ends; gives the status of any other CPU profile meanwhile. */
export function holdProfiler(port: number, signal: AbortSignal): { ended: Promise<void>; ask(): Promise<number> } {
  const url = `http://127.0.0.1:${port}/debug/pprof/profile`;
  const hold = async () => {
    // A question that came in before is answered first, and this one refused.
    while ((await fetch(`${url}?seconds=600`, { signal })).status === 409);
  };
  const ask = async () => (await fetch(`${url}?seconds=0.1`)).status;
  return { ended: hold().catch(() => undefined), ask };
}
