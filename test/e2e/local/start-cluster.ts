// Brings up the cluster of CNPG_TS_STATE; a program of its own, so that a test can kill it.
import { clusterFolders, stateFolder } from "../../../local/cluster/folders.ts";
import { startCluster } from "../../../local/cluster/up.ts";
import { reportToStderr } from "../../../local/terminal/progress.ts";

await startCluster(clusterFolders(stateFolder()), reportToStderr, { fsync: false });
