import type { ObjectStore } from "../../src/ports/object-store.ts";
import { createFiles } from "../../src/process/files.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { createBulkFiles } from "../../src/store/bulk-files.ts";
import { captureLogs } from "./log-capture.ts";

/** What an archiver or a restorer of WAL needs, all of it real, on that store. */
export function archivePorts(store: ObjectStore) {
  return {
    store,
    files: createFiles(),
    bulk: createBulkFiles(),
    clock: systemClock,
    random: systemRandom,
    logger: captureLogs().logger,
  };
}
