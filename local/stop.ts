import { stopCluster } from "./cluster/down.ts";
import { clusterFolders, stateFolder } from "./cluster/folders.ts";
import { purge } from "./cluster/purge.ts";
import { parseStopOptions, stopHelp } from "./options.ts";
import { reportToStderr as report } from "./terminal/progress.ts";
import { runMain, UserError } from "./terminal/user-error.ts";

await runMain(async () => {
  const options = parseStopOptions(process.argv.slice(2));
  if (options.help) {
    process.stdout.write(stopHelp);
    return;
  }
  if (process.getuid?.() !== 0) throw new UserError("npm stop needs root, as npm start does.");
  const folders = clusterFolders(stateFolder());
  const wasRunning = await stopCluster(folders, report);
  if (options.purge) purge(folders);
  report(wasRunning ? "The local cluster is stopped." : "The local cluster was not running.");
  if (options.purge) report("Its data, the built programs and the images are removed.");
});
