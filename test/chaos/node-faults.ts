import { cutNode, powerOffNode, rejoinNode } from "../../local/cluster/faults.ts";
import { clusterFolders, stateFolder } from "../../local/cluster/folders.ts";
import { startCluster } from "../../local/cluster/up.ts";
import type { Fault } from "./fault.ts";

/** Faults of the whole node that the primary is on. */
export const nodeFaults: Readonly<Record<string, Fault>> = {
  "node-cut-off": {
    about: "the primary's node loses its network for a minute",
    holdSeconds: 60,
    controlPlane: true,
    make: async ({ primary }) => {
      await cutNode(primary.node);
      return () => rejoinNode(primary.node);
    },
  },
  "node-lost": {
    about: "the primary's node loses its power",
    holdSeconds: 60,
    controlPlane: true,
    make: async ({ primary }) => {
      await powerOffNode(primary.node);
      return () => startCluster(clusterFolders(stateFolder()), () => undefined);
    },
  },
};
