// A process that takes one base backup and dies without any clean-up at the asked step.
import { takeBaseBackup } from "../../../src/archive/base/take-base-backup.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { createSqlConnector } from "../../../src/sql/pg-connector.ts";
import type { S3Options } from "../../../src/store/s3-options.ts";
import { createS3Store } from "../../../src/store/s3-store.ts";
import { createTreeFiles } from "../../../src/store/tree-files.ts";
import { captureLogs } from "../../support/log-capture.ts";

export interface BaseChildOptions {
  s3: S3Options;
  place: { path: string; serverName: string };
  backupName: string;
  server: { host: string; port: number };
  dieAfter: string;
}

const { s3, place, backupName, server, dieAfter } = JSON.parse(process.argv[2] ?? "{}") as BaseChildOptions;
const session = { ...server, user: "postgres", database: "postgres", applicationName: "base-child" };
await takeBaseBackup(
  {
    store: await createS3Store(s3),
    tree: createTreeFiles(),
    clock: systemClock,
    logger: captureLogs().logger,
    connect: (signal) => createSqlConnector().connect(session, signal),
    failpoint: (step) => {
      if (step === dieAfter) process.kill(process.pid, "SIGKILL");
    },
  },
  { ...place, backupName, immediateCheckpoint: true, walTimeoutMs: 120_000 },
);
