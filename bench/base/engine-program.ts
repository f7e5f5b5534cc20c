// The program that the benches measure: one base backup or one base restore by the archive engine, in a process of its own, so
// that its memory is its own too. Prints one JSON line.
import { restoreBaseBackup } from "../../src/archive/base/restore-base-backup.ts";
import { takeBaseBackup } from "../../src/archive/base/take-base-backup.ts";
import type { CompressionName } from "../../src/barman/compression.ts";
import { collectAtOnce } from "../../src/runtime/collect-at-once.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { createSqlConnector } from "../../src/sql/pg-connector.ts";
import type { S3Options } from "../../src/store/s3-options.ts";
import { createS3Store } from "../../src/store/s3-store.ts";
import { createTreeFiles } from "../../src/store/tree-files.ts";
import { captureLogs } from "../../test/support/log-capture.ts";

/** What the program is asked for, as JSON in its first argument. */
export interface EngineOrder {
  s3: S3Options;
  place: { path: string; serverName: string };
  backup?: { name: string; compression: CompressionName | undefined; socketDir: string; port: number };
  restore?: { backupId: string; dataFolder: string; sync: boolean };
}

/** What it prints. */
export interface EngineOutcome {
  backupId: string;
  /** Milliseconds of the work alone. */
  ms: number;
  /** Largest resident set of the process. */
  peakMb: number;
  storedBytes: number;
}

async function main(order: EngineOrder): Promise<EngineOutcome> {
  // As the plugin's program does for a recovery Job.
  if (order.restore) collectAtOnce();
  const store = await createS3Store(order.s3);
  const common = { store, tree: createTreeFiles(), clock: systemClock, logger: captureLogs().logger };
  const started = performance.now();
  const outcome = await work(order, common);
  const ms = performance.now() - started;
  store.close();
  return { ...outcome, ms, peakMb: process.resourceUsage().maxRSS / 1024 };
}

type Common = Parameters<typeof restoreBaseBackup>[0];

async function work({ place, backup, restore }: EngineOrder, common: Common) {
  if (backup) {
    const { name, compression, socketDir: host, port } = backup;
    const server = { host, port, user: "postgres", database: "postgres", applicationName: "bench" };
    const connect = (signal?: AbortSignal) => createSqlConnector().connect(server, signal);
    const request = { ...place, backupName: name, compression, immediateCheckpoint: true };
    const { backupId, storedBytes } = await takeBaseBackup({ ...common, connect }, request);
    return { backupId, storedBytes };
  }
  if (!restore) throw new Error("neither a backup nor a restore was asked for");
  await restoreBaseBackup(common, { ...place, ...restore });
  return { backupId: restore.backupId, storedBytes: 0 };
}

void main(JSON.parse(process.argv[2] ?? "{}") as EngineOrder).then((outcome) => {
  process.stdout.write(`${JSON.stringify(outcome)}\n`);
});
