import type { PythonValue } from "./python-literal.ts";

/** How long the copy of a base backup took; seconds. */
export interface CopyStats {
  totalTime: number;
  workers: number;
  /** Seconds by item: `data`, and each tablespace's name. */
  copyTimePerItem: Readonly<Record<string, number>>;
  serializedCopyTimePerItem: Readonly<Record<string, number>>;
  copyTime: number;
  serializedCopyTime: number;
}

/** Builds the `copy_stats` of a `backup.info`, keys in Barman's order. */
export function buildCopyStats(stats: CopyStats): PythonValue {
  return dict([
    ["total_time", float(stats.totalTime)],
    ["number_of_workers", { kind: "int", text: String(stats.workers) }],
    ["analysis_time", { kind: "int", text: "0" }],
    ["analysis_time_per_item", dict([["data", { kind: "int", text: "0" }]])],
    ["copy_time_per_item", seconds(stats.copyTimePerItem)],
    ["serialized_copy_time_per_item", seconds(stats.serializedCopyTimePerItem)],
    ["copy_time", float(stats.copyTime)],
    ["serialized_copy_time", float(stats.serializedCopyTime)],
  ]);
}

function seconds(items: Readonly<Record<string, number>>): PythonValue {
  return dict(Object.entries(items).map(([name, value]) => [name, float(value)]));
}

function dict(entries: [string, PythonValue][]): PythonValue {
  return { kind: "dict", entries: entries.map(([key, value]) => [{ kind: "string", value: key }, value]) };
}

/** Python's `repr` of a float in the range of durations: at least one digit after the point. */
function float(value: number): PythonValue {
  const text = Math.abs(value) > 0 && Math.abs(value) < 1e-6 ? "0.0" : String(value);
  return { kind: "float", text: /^-?\d+$/.test(text) ? `${text}.0` : text };
}
