/** What the command line says beside the number of runs. */
export interface BenchOptions {
  /** Megabytes of the database that is backed up and restored. */
  sizeMb: number;
  /** Compressions to measure, `none` for none; empty: those that the bench has by itself. */
  compressions: readonly string[];
}

/** A measurement that can be asked for by name. */
export interface Bench {
  readonly about: string;
  /** Whether it measures inside the local Kubernetes. @default false */
  readonly needsCluster?: boolean;
  run(runs: number, options: BenchOptions): Promise<void>;
}

/** What is wanted of a figure. */
export interface Goal {
  /** Largest `ours / peer`. */
  mostRatio?: number;
  /** Smallest `ours / peer`. */
  leastRatio?: number;
  /** Largest value of ours. */
  most?: number;
}

/** One figure of ours beside the peer's. */
export interface Figure {
  bench: string;
  metric: string;
  /** Median of our runs. */
  ours: number;
  /** The peer's figure; a dated constant where the peer is not built here. */
  peer: number;
  goal?: Goal;
  unit: string;
  /** Where the peer's figure is from, how many runs, their spread. */
  context: Record<string, unknown>;
}

/** Median of a list; the mean of the middle two when even. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** The goal in words, and whether it is met. */
function judge({ ours, peer, goal, unit }: Figure): { goal?: string; met?: boolean } {
  if (!goal) return {};
  const ratio = ours / peer;
  const { mostRatio, leastRatio, most } = goal;
  const parts = [
    ...(mostRatio === undefined ? [] : [{ words: `ratio at most ${mostRatio}`, met: ratio <= mostRatio }]),
    ...(leastRatio === undefined ? [] : [{ words: `ratio at least ${leastRatio}`, met: ratio >= leastRatio }]),
    ...(most === undefined ? [] : [{ words: `at most ${most} ${unit}`, met: ours <= most }]),
  ];
  return { goal: parts.map(({ words }) => words).join(", "), met: parts.every(({ met }) => met) };
}

/** Prints one JSON line. */
export function report(figure: Figure): void {
  const round = (value: number) => Math.round(value * 1000) / 1000;
  const line = {
    bench: figure.bench,
    metric: figure.metric,
    ours: round(figure.ours),
    peer: round(figure.peer),
    ratio: round(figure.ours / figure.peer),
    unit: figure.unit,
    ...judge(figure),
    context: figure.context,
  };
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

/** The peer's figures: CloudNativePG 1.30.0 on this kind of machine, single runs. */
export const peerOrigin = "CloudNativePG 1.30.0, measured 2026-11 on a machine of this kind, single runs";
