import { mkdirSync, rmSync } from "node:fs";
import { withFileLock } from "../process/file-lock.ts";
import { identify, isAlive, signal } from "../process/identity.ts";
import { endSession } from "../process/session.ts";
import { waitFor } from "../process/wait.ts";
import type { Report } from "../terminal/progress.ts";
import type { ClusterFolders } from "./folders.ts";
import { readRecord, writeRecord } from "./inside/record.ts";

/**
 * Runs the work of `npm start`: one at a time for each cluster, known to `npm stop`, and ended by an interrupt
 * together with the programs it waits for. What it has started stays, and the next one goes on from there.
 */
export async function asStarter(folders: ClusterFolders, report: Report, work: () => Promise<void>): Promise<void> {
  mkdirSync(folders.root, { recursive: true });
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.once(name, () => {
      report("Interrupted. `npm start` goes on from here, `npm stop` ends what runs.");
      rmSync(folders.starter, { force: true });
      endSession();
      process.exit(130);
    });
  }
  await withFileLock(
    folders.lock,
    () => report("→ Waiting for another `npm start` of this clone to finish"),
    async () => {
      const self = identify(process.pid);
      if (self) writeRecord(folders.starter, self);
      try {
        await work();
      } catch (error) {
        // What still runs side by side with the part that failed would only delay the message.
        endSession();
        throw error;
      } finally {
        rmSync(folders.starter, { force: true });
      }
    },
  );
}

/** Interrupts a running `npm start` of this cluster and waits for its end. */
export async function interruptStarter(folders: ClusterFolders): Promise<void> {
  const starter = readRecord(folders.starter);
  if (!starter || !signal(starter, "SIGTERM")) return;
  await waitFor("end of the running npm start", async () => !isAlive(starter), { timeoutMs: 20_000 });
}
