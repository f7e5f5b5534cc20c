// A process with an archiver of its own, that archives the files named on its command line one after the other, as PostgreSQL
// asks for them, and dies without any clean-up at the asked step. Prints the name of each file that was acknowledged.
import { writeSync } from "node:fs";
import { rename } from "node:fs/promises";
import { join } from "node:path";
import { WalArchiver } from "../../../src/archive/wal-archiver.ts";
import { createFiles } from "../../../src/process/files.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { createBulkFiles } from "../../../src/store/bulk-files.ts";
import type { S3Options } from "../../../src/store/s3-options.ts";
import { createS3Store } from "../../../src/store/s3-store.ts";
import { captureLogs } from "../../support/log-capture.ts";

export interface ArchiveChildOptions {
  s3: S3Options;
  root: string;
  serverName: string;
  names: string[];
  /** Dies after this step for the n-th time. */
  die?: { step: string; count: number };
}

const options = JSON.parse(process.argv[2] ?? "{}") as ArchiveChildOptions;
const wal = join(options.root, "pg_wal");
let left = options.die?.count ?? 0;
const archiver = new WalArchiver(
  {
    path: "p",
    serverName: options.serverName,
    destination: "s3",
    walFolder: wal,
    recordFolder: join(options.root, "records"),
    compression: "zstd",
    maxParallel: 2,
  },
  {
    store: await createS3Store(options.s3),
    files: createFiles(),
    bulk: createBulkFiles(),
    clock: systemClock,
    logger: captureLogs().logger,
    failpoint: (step) => {
      if (step !== options.die?.step) return;
      left -= 1;
      if (left === 0) process.kill(process.pid, "SIGKILL");
    },
  },
);
const markerPath = join(options.root, "marker");
const files = createFiles();
for (const name of options.names) {
  const checkEmpty = await files.exists(markerPath);
  await archiver.archive({ path: join(wal, name), checkEmpty, markerPath, lookAhead: true });
  writeSync(1, `${name}\n`);
  await rename(join(wal, "archive_status", `${name}.ready`), join(wal, "archive_status", `${name}.done`));
}
process.exit(0);
