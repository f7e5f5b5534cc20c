import type { SqlRawResult } from "../../ports/sql-session.ts";
import { parseGoDuration } from "../../postgres/go-duration.ts";
import { formatLabelValue, parseMetricValue, parseNumberArray } from "./column-values.ts";
import { type ColumnMapping, expectedColumns, type QueryDefinition } from "./query-definition.ts";
import type { HistogramValue, MetricFamily, Refusal, SampleSet } from "./sample-set.ts";

/** Told about each value or sample that could not be used. */
export type OnProblem = (problem: { column?: string; metric?: string; reason: string }) => void;

/**
 * Turns the rows of a query into samples. Labels and values are found by column name, so that the order of the columns does
 * not matter. A result with other columns than the mapping gives nothing.
 */
export function addResult(
  query: QueryDefinition,
  result: SqlRawResult,
  samples: SampleSet,
  onProblem: OnProblem,
): void {
  const expected = expectedColumns(query);
  if (result.columns.length !== expected.size) {
    onProblem({ reason: `the result has ${result.columns.length} columns, the mapping ${expected.size}` });
    return;
  }
  const position = new Map(result.columns.map((column, index) => [column.name, index]));
  const missing = [...expected].find((name) => !position.has(name));
  if (missing !== undefined) {
    onProblem({ column: missing, reason: "the result has no such column" });
    return;
  }
  for (const row of result.rows) {
    const cell = (column: string): Cell => {
      const index = position.get(column) ?? -1;
      return { text: row[index] ?? null, typeId: result.columns[index]?.typeId ?? 0 };
    };
    addRow(query, cell, samples, onProblem);
  }
}

interface Cell {
  text: string | null;
  typeId: number;
}

function addRow(
  query: QueryDefinition,
  cell: (column: string) => Cell,
  samples: SampleSet,
  onProblem: OnProblem,
): void {
  const labels: Record<string, string> = {};
  for (const mapping of query.columns.values()) {
    if (mapping.usage !== "LABEL") continue;
    const { text, typeId } = cell(mapping.column);
    labels[mapping.name] = formatLabelValue(text, typeId);
  }
  for (const mapping of query.columns.values()) {
    if (mapping.usage === "LABEL" || mapping.usage === "DISCARD") continue;
    const refusal = addColumn(query, mapping, labels, cell, samples, onProblem);
    if (refusal) onProblem({ metric: metricName(query, mapping), reason: refusalText[refusal] });
  }
}

/** Said of a sample that was left out. */
export const refusalText: Readonly<Record<Refusal, string>> = {
  duplicate: "two rows have the same labels; the later one is left out",
  inconsistent: "another query gives this name with another type",
  invalidName: "not a valid metric or label name",
};

function addColumn(
  query: QueryDefinition,
  mapping: ColumnMapping,
  labels: Readonly<Record<string, string>>,
  cell: (column: string) => Cell,
  samples: SampleSet,
  onProblem: OnProblem,
): Refusal | undefined {
  const family: MetricFamily = {
    name: metricName(query, mapping),
    help: mapping.description,
    type: mapping.usage === "COUNTER" ? "counter" : mapping.usage === "HISTOGRAM" ? "histogram" : "gauge",
  };
  if (mapping.usage === "HISTOGRAM") {
    const histogram = readHistogram(mapping.column, cell);
    if (histogram) return samples.addHistogram(family, labels, histogram);
    onProblem({ column: mapping.column, reason: "bounds, buckets, sum and count make no histogram" });
    return undefined;
  }
  const { text, typeId } = cell(mapping.column);
  const value = readValue(mapping, text, typeId);
  if (value === "skip") return undefined;
  if (value === undefined) {
    onProblem({ column: mapping.column, reason: "the value is not a number" });
    return undefined;
  }
  return samples.add(family, labels, value);
}

function readValue(mapping: ColumnMapping, text: string | null, typeId: number): number | undefined | "skip" {
  switch (mapping.usage) {
    case "MAPPEDMETRIC":
      return text === null ? "skip" : mapping.valueOf.get(formatLabelValue(text, typeId));
    case "DURATION":
      // The settings of poolers and servers use -1 for "off".
      return text === null || text === "-1" ? "skip" : (parseGoDuration(text) ?? "skip");
    default:
      return parseMetricValue(text, typeId);
  }
}

function readHistogram(column: string, cell: (column: string) => Cell): HistogramValue | undefined {
  const bounds = parseNumberArray(cell(column).text);
  const counts = parseNumberArray(cell(`${column}_bucket`).text);
  const sum = parseMetricValue(cell(`${column}_sum`).text, 0);
  const count = parseMetricValue(cell(`${column}_count`).text, 0);
  if (!bounds || !counts || bounds.length > counts.length || sum === undefined || count === undefined) return undefined;
  return { buckets: bounds.map((upTo, index) => ({ upTo, count: counts[index] ?? 0 })), sum, count };
}

function metricName(query: QueryDefinition, mapping: ColumnMapping): string {
  return `cnpg_${query.name}_${mapping.name}${mapping.usage === "DURATION" ? "_milliseconds" : ""}`;
}
