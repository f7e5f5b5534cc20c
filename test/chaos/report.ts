import type { ChaosRecord } from "./chaos-record.ts";
import type { Fault } from "./fault.ts";
import { percentile } from "./verdict.ts";

type KnownFault = Pick<Fault, "about" | "stopsLauncher">;

/** What is known of each fault by its name, under the headings of the report. */
export type FaultCatalogue = Readonly<Record<string, Readonly<Record<string, KnownFault>>>>;

const columns = [
  "fault",
  "synchronous",
  "runs",
  "gap p50",
  "gap p95",
  "gap p99",
  "session",
  "overlap",
  "rows acknowledged",
  "lost",
  "healthy again within",
];

/** Whether a run broke what is promised in every case, or what `required` replication promises beyond. */
export function brokePromise(
  { overlapSeconds, lost, durability, broken }: ChaosRecord,
  fault: Pick<Fault, "stopsLauncher"> | undefined,
): boolean {
  if (broken !== undefined) return true;
  if (durability === "required") return overlapSeconds > 0 || lost !== 0;
  return overlapSeconds > 0 && fault?.stopsLauncher !== true;
}

/** The report as Markdown: a table for each kind of fault, with a line for each fault and kind of replication. */
export function renderReport(records: readonly ChaosRecord[], catalogue: FaultCatalogue): string {
  const tables = Object.entries(catalogue).flatMap(([kind, faults]) => {
    const lines = Object.entries(faults).flatMap(([name, { about }]) => renderFault(about, ofFault(records, name)));
    return lines.length > 0 ? [`## ${kind}\n\n${renderTable([columns, columns.map(() => "---"), ...lines])}`] : [];
  });
  const known = new Map(Object.values(catalogue).flatMap((faults) => Object.entries(faults)));
  const others = records.filter(({ fault }) => !known.has(fault));
  const bad = records.filter((record) => brokePromise(record, known.get(record.fault)));
  return `# Faults on the local Kubernetes

Written by \`npm run chaos\` from [runs.jsonl](runs.jsonl), which holds every run that was made, the bad ones too. Three instances on three nodes, default settings but for what a row says, under writes of two kinds: through the \`-rw\`
Service with a connection for each row, and by one session that was open on the primary before the fault. Times in seconds. All nodes and the control plane share the cores of one machine; \`load\` in the runs says how busy it was.

- **gap**: longest time without an acknowledged row through the Service. A fault under which nobody may write, such as a full disk, lasts as long as its row says;
- **session**: longest time that the open session was still acknowledged after the fault began;
- **overlap**: longest time that it was still acknowledged after another server had acknowledged one: two primaries. It must be 0, but where everything of an instance stood still for longer than its right to write lasts, the launcher that ends it too: what was under way then may be acknowledged when it goes on, and only \`required\` replication keeps it from counting;
- **lost**: acknowledged rows that are not there in the end. With synchronous replication \`required\` it must be 0.

${records.length} runs, ${bad.length} of which broke a promise${bad.length > 0 ? " (last section)" : ""}.${others.length > 0 ? ` ${others.length} are of faults that are not made any more.` : ""}

${[...tables, ...(bad.length > 0 ? [renderBroken(bad)] : [])].join("\n\n")}
`;
}

function ofFault(records: readonly ChaosRecord[], name: string): ChaosRecord[] {
  return records.filter(({ fault }) => fault === name);
}

function renderFault(about: string, records: readonly ChaosRecord[]): string[][] {
  return (["none", "required"] as const).flatMap((durability) => {
    const runs = records.filter((record) => record.durability === durability);
    if (runs.length === 0) return [];
    const gaps = runs.map(({ gapSeconds }) => gapSeconds);
    const most = (pick: (run: ChaosRecord) => number) => number(Math.max(...runs.map(pick)));
    return [
      [
        about,
        durability,
        String(runs.length),
        ...[0.5, 0.95, 0.99].map((share) => number(percentile(gaps, share))),
        most(({ sessionSeconds }) => sessionSeconds),
        most(({ overlapSeconds }) => overlapSeconds),
        String(runs.reduce((sum, { acknowledged }) => sum + acknowledged, 0)),
        renderLost(runs),
        most(({ healthySeconds }) => healthySeconds),
      ],
    ];
  });
}

/** A run after which nobody could tell is not one that lost nothing. */
function renderLost(runs: readonly ChaosRecord[]): string {
  const sum = runs.reduce((total, { lost }) => total + (lost ?? 0), 0);
  const unknown = runs.filter(({ lost }) => lost === null).length;
  return unknown > 0 ? `${sum}, unknown in ${unknown}` : String(sum);
}

function renderBroken(records: readonly ChaosRecord[]): string {
  const rows = records.map(({ fault, durability, date, commit, overlapSeconds, lost, broken }) => [
    fault,
    durability,
    date,
    commit,
    number(overlapSeconds),
    lost === null ? "unknown" : String(lost),
    (broken ?? "").replaceAll("|", "\\|").replaceAll("\n", " "),
  ]);
  const head = ["fault", "synchronous", "date", "commit", "overlap", "lost", "what else"];
  return `## Runs that broke a promise\n\n${renderTable([head, head.map(() => "---"), ...rows])}`;
}

const number = (value: number | undefined) => (value === undefined ? "–" : value.toFixed(1));

const renderTable = (rows: readonly (readonly string[])[]) =>
  rows.map((cells) => `| ${cells.join(" | ")} |`).join("\n");
