import { planBootstrapTarget } from "../../plan/instance/bootstrap-target.ts";
import type { InstanceContext } from "../instance-context.ts";

/** Makes room for a new data folder: data that may be someone's is put aside, the rest of a failed attempt removed. */
export async function clearTarget(context: InstanceContext): Promise<void> {
  const { files, paths, data, logger, clock, settings } = context;
  const folders = [paths.pgData, ...(settings.pgWal === undefined ? [] : [settings.pgWal])];
  const exists = (await Promise.all(folders.map((folder) => files.exists(folder)))).some(Boolean);
  const action = planBootstrapTarget({
    exists,
    controlReadable: exists && (await data.tryControl()) !== undefined,
    now: clock.now(),
  });
  if (action.kind === "none") return;
  for (const folder of folders) {
    if (!(await files.exists(folder))) continue;
    if (action.kind === "remove") {
      logger.info("Removing a folder that a failed attempt left", { folder, reason: action.reason });
      await files.remove(folder, { recursive: true });
    } else {
      const renamed = `${folder}_${action.suffix}`;
      logger.info("Putting an existing folder aside", { folder, renamed, reason: action.reason });
      await files.rename(folder, renamed);
    }
  }
}
