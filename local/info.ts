import { clusterFolders, stateFolder } from "./cluster/folders.ts";
import { readInfo } from "./cluster/info.ts";
import { runMain } from "./terminal/user-error.ts";

await runMain(async () => {
  process.stdout.write(`${JSON.stringify(readInfo(clusterFolders(stateFolder())), null, 2)}\n`);
});
