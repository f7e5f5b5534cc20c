import { nodeAddresses } from "./addresses.ts";
import { enterNode } from "./enter.ts";
import { clusterFolders, nodeFolders, stateFolder } from "./folders.ts";
import { ensureImage } from "./images.ts";
import { readState } from "./state.ts";

/**
 * Makes the image of a docker-archive available on every node of the running local cluster, under the names that the
 * archive gives it. Returns whether any node lacked it.
 */
export async function loadImageArchive(path: string): Promise<boolean> {
  const folders = clusterFolders(stateFolder());
  const { nodes } = readState(folders.stateFile);
  let loaded = false;
  for (let index = 1; index <= nodes; index++) {
    const { name } = nodeAddresses(index);
    if (await ensureImage(path, nodeFolders(folders, name).loadedImages, enterNode(name, folders))) loaded = true;
  }
  return loaded;
}
