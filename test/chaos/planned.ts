import { nodeAddresses } from "../../local/cluster/addresses.ts";
import { kubectl } from "../e2e/support/kubectl.ts";
import { type Fault, nothing } from "./fault.ts";

/** What an administrator does: nothing may be lost by it. */
export const planned: Readonly<Record<string, Fault>> = {
  switchover: {
    about: "a planned switchover",
    holdSeconds: 0,
    make: async ({ cluster, standbys: [standby] }) => {
      await cluster.switchOver(standby?.name ?? "");
      return nothing;
    },
  },
  "node-drained": {
    about: "the primary's node is drained, and back after 20 s",
    holdSeconds: 20,
    controlPlane: true,
    make: async ({ primary }) => {
      const { name } = nodeAddresses(primary.node);
      // The writer of the open session stays: its output is looked at.
      const which = ["--pod-selector=cnpg.io/podRole=instance", "--delete-emptydir-data", "--timeout=120s"];
      await kubectl(["drain", name, "--force", ...which]);
      return () => kubectl(["uncordon", name]);
    },
  },
};
