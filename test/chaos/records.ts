import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ChaosRecord } from "./chaos-record.ts";
import { faultsByKind } from "./faults.ts";
import { renderReport } from "./report.ts";

const folder = "docs/chaos";
const file = join(folder, "runs.jsonl");

export function readRecords(): ChaosRecord[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").split("\n").filter(Boolean);
  return lines.map((line) => JSON.parse(line) as ChaosRecord);
}

/** Appends a run and writes the report anew. */
export function keep(record: ChaosRecord): void {
  mkdirSync(folder, { recursive: true });
  appendFileSync(file, `${JSON.stringify(record)}\n`);
  writeReport();
}

/** Writes the report from the runs that are kept. */
export function writeReport(): void {
  writeFileSync(join(folder, "README.md"), renderReport(readRecords(), faultsByKind));
}
