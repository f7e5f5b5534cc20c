import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { percentile, type Verdict } from "./verdict.ts";

/** One run of a fault, as it is kept. */
export interface ChaosRecord extends Verdict {
  readonly fault: string;
  /** `required`: a commit waits for one standby; `none`: asynchronous replication. */
  readonly durability: "none" | "required";
  /** Whether another instance is the primary in the end. */
  readonly moved: boolean;
  /** Day and time of the run, ISO 8601. */
  readonly date: string;
  /** Commit of the programs. */
  readonly commit: string;
  /** From the fault until the cluster was healthy with all instances, in seconds. */
  readonly healthySeconds: number;
  /** One-minute load of the machine when the fault began. */
  readonly load: number;
}

const folder = "docs/chaos";
const file = join(folder, "runs.jsonl");

export function readRecords(): ChaosRecord[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").split("\n").filter(Boolean);
  return lines.map((line) => JSON.parse(line) as ChaosRecord);
}

/** Appends a run and writes the table anew. */
export function keep(record: ChaosRecord, faults: ReadonlyMap<string, string>): void {
  mkdirSync(folder, { recursive: true });
  appendFileSync(file, `${JSON.stringify(record)}\n`);
  writeFileSync(join(folder, "README.md"), renderReport(readRecords(), faults));
}

const number = (value: number | undefined) => (value === undefined ? "–" : value.toFixed(1));

/** The report as Markdown: one line for each fault and kind of replication. */
export function renderReport(records: readonly ChaosRecord[], faults: ReadonlyMap<string, string>): string {
  const groups = Map.groupBy(records, ({ fault, durability }) => `${fault}\t${durability}`);
  const lines = [...groups.entries()]
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([key, runs]) => {
      const [fault = "", durability = ""] = key.split("\t");
      const gaps = runs.map(({ gapSeconds }) => gapSeconds);
      const most = (pick: (run: ChaosRecord) => number) => number(Math.max(...runs.map(pick)));
      const total = (pick: (run: ChaosRecord) => number) => String(runs.reduce((sum, run) => sum + pick(run), 0));
      const cells = [
        faults.get(fault) ?? fault,
        durability,
        String(runs.length),
        ...[0.5, 0.95, 0.99].map((share) => number(percentile(gaps, share))),
        most(({ sessionSeconds }) => sessionSeconds),
        most(({ overlapSeconds }) => overlapSeconds),
        total(({ acknowledged }) => acknowledged),
        total(({ lost }) => lost),
        most(({ healthySeconds }) => healthySeconds),
      ];
      return `| ${cells.join(" | ")} |`;
    });
  return `# Faults on the local Kubernetes

Written by \`npm run chaos\` from [runs.jsonl](runs.jsonl), which holds every run that was made, the bad ones too. Three instances on three nodes, default settings but for what a row says, under writes of two kinds: through the \`-rw\`
Service with a connection for each row, and by one session that was open on the primary before the fault. Times in seconds. All nodes and the control plane share the cores of one machine; \`load\` in the runs says how busy it was.

- **gap**: longest time without an acknowledged row through the Service;
- **session**: longest time that the open session was still acknowledged after the fault began;
- **overlap**: longest time that it was still acknowledged after the successor had acknowledged a row: two primaries. It must be 0;
- **lost**: acknowledged rows that are not there in the end. With synchronous replication \`required\` it must be 0.

${records.length} runs.

| fault | synchronous | runs | gap p50 | gap p95 | gap p99 | session | overlap | rows acknowledged | lost | healthy again within |
|---|---|---|---|---|---|---|---|---|---|---|
${lines.join("\n")}
`;
}
