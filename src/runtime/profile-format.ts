// V8 tells profiles as call trees; pprof wants samples with the path from a function up to its callers.

import type { HeapProfiler, Profiler, Runtime } from "node:inspector";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import {
  Line,
  Location,
  Mapping,
  Profile,
  Function as ProfiledFunction,
  type ProfileInput,
  Sample,
  StringTable,
  ValueType,
} from "pprof-format";

/** What a profile tells besides its samples. */
export interface ProfileFacts {
  /** File of the program. */
  program: string;
  /** When it was begun, milliseconds since the epoch. */
  startedAt: number;
}

/** A function on a call path, what was measured in itself, and what it called. */
interface CallNode {
  frame: Runtime.CallFrame;
  /** One for each type of sample; all zero = nothing to tell. */
  values: readonly number[];
  children: readonly CallNode[];
}

/** A CPU profile as gzipped pprof: samples, and nanoseconds of this process's JavaScript thread. Idle time is left out. */
export function encodeCpuProfile(
  profile: Profiler.Profile,
  facts: ProfileFacts & { intervalMicros: number },
): Promise<Uint8Array> {
  const builder = new ProfileBuilder(facts.program);
  builder.addTree(cpuTree(profile));
  const cpu = builder.type("cpu", "nanoseconds");
  return builder.finish({
    sampleType: [builder.type("samples", "count"), cpu],
    periodType: cpu,
    period: facts.intervalMicros * 1_000,
    timeNanos: nanoseconds(facts.startedAt),
    durationNanos: (profile.endTime - profile.startTime) * 1_000,
  });
}

/** A sampled heap profile as gzipped pprof: bytes that are in use, by the place that asked for them. */
export function encodeHeapProfile(
  profile: HeapProfiler.SamplingHeapProfile,
  facts: ProfileFacts & { intervalBytes: number },
): Promise<Uint8Array> {
  const builder = new ProfileBuilder(facts.program);
  builder.addTree(heapTree(profile.head));
  const space = builder.type("inuse_space", "bytes");
  return builder.finish({
    sampleType: [space],
    periodType: builder.type("space", "bytes"),
    period: facts.intervalBytes,
    timeNanos: nanoseconds(facts.startedAt),
  });
}

function cpuTree(profile: Profiler.Profile): CallNode {
  const measured = selfTimes(profile);
  const nodes = new Map(profile.nodes.map((it) => [it.id, it]));
  const convert = (id: number): CallNode[] => {
    const node = nodes.get(id);
    // A process that waits uses no processor.
    if (!node || node.callFrame.functionName === "(idle)") return [];
    const { samples, micros } = measured.get(id) ?? { samples: 0, micros: 0 };
    const children = (node.children ?? []).flatMap(convert);
    return [{ frame: node.callFrame, values: [samples, micros * 1_000], children }];
  };
  const [root] = convert(profile.nodes[0]?.id ?? 0);
  if (!root) throw new Error("the CPU profiler gave a profile without a root");
  return root;
}

/** What was on top of the stack at a sample counts as running until the next one. */
function selfTimes(profile: Profiler.Profile): Map<number, { samples: number; micros: number }> {
  const { samples = [], timeDeltas = [] } = profile;
  const measured = new Map<number, { samples: number; micros: number }>();
  let at = profile.startTime;
  for (const [index, id] of samples.entries()) {
    at += timeDeltas[index] ?? 0;
    const until = timeDeltas[index + 1] ?? profile.endTime - at;
    const before = measured.get(id) ?? { samples: 0, micros: 0 };
    // Samples of one burst may come out of order.
    measured.set(id, { samples: before.samples + 1, micros: before.micros + Math.max(0, until) });
  }
  return measured;
}

function heapTree(node: HeapProfiler.SamplingHeapProfileNode): CallNode {
  return { frame: node.callFrame, values: [node.selfSize], children: node.children.map(heapTree) };
}

function nanoseconds(ms: number): bigint {
  return BigInt(Math.round(ms)) * 1_000_000n;
}

class ProfileBuilder {
  readonly #strings = new StringTable();
  readonly #functions = new Map<string, ProfiledFunction>();
  readonly #locations = new Map<string, Location>();
  readonly #samples: Sample[] = [];
  readonly #mapping: Mapping;

  constructor(program: string) {
    // Readers look for symbols of locations that no mapping claims to know.
    this.#mapping = new Mapping({
      id: 1,
      filename: this.#strings.dedup(basename(program)),
      hasFunctions: true,
      hasFilenames: true,
      hasLineNumbers: true,
    });
  }

  type(type: string, unit: string): ValueType {
    return new ValueType({ type: this.#strings.dedup(type), unit: this.#strings.dedup(unit) });
  }

  /** The root stands for the whole program and is on no path. */
  addTree(root: CallNode): void {
    this.#add(root, []);
  }

  finish(fields: ProfileInput): Promise<Uint8Array> {
    const profile = new Profile({
      ...fields,
      stringTable: this.#strings,
      mapping: [this.#mapping],
      function: [...this.#functions.values()],
      location: [...this.#locations.values()],
      sample: this.#samples,
    });
    return promisify(gzip)(profile.encode());
  }

  #add(node: CallNode, path: readonly number[]): void {
    if (path.length > 0 && node.values.some((it) => it > 0)) {
      this.#samples.push(new Sample({ locationId: [...path], value: [...node.values] }));
    }
    for (const child of node.children) this.#add(child, [this.#locate(child.frame), ...path]);
  }

  #locate(frame: Runtime.CallFrame): number {
    const key = JSON.stringify([frame.functionName, frame.url, frame.lineNumber, frame.columnNumber]);
    let location = this.#locations.get(key);
    if (!location) {
      // V8 counts lines from 0, and has none for what is no JavaScript.
      const line = frame.lineNumber + 1;
      const file = fileOf(frame.url);
      const name = this.#strings.dedup(frame.functionName || `(anonymous ${basename(file)}:${line})`);
      const filename = this.#strings.dedup(file);
      const id = this.#functions.size + 1;
      this.#functions.set(key, new ProfiledFunction({ id, name, systemName: name, filename, startLine: line }));
      location = new Location({ id, mappingId: 1, line: [new Line({ functionId: id, line })] });
      this.#locations.set(key, location);
    }
    return Number(location.id);
  }
}

function fileOf(url: string): string {
  return url.startsWith("file:") ? fileURLToPath(url) : url;
}
