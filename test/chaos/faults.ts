import { cutNode, powerOffNode, rejoinNode } from "../../local/cluster/faults.ts";
import { clusterFolders, stateFolder } from "../../local/cluster/folders.ts";
import { startCluster } from "../../local/cluster/up.ts";
import type { TestCluster } from "../e2e/support/cluster.ts";
import { freezeApiServer } from "../e2e/support/control-plane.ts";
import { kubectl } from "../e2e/support/kubectl.ts";
import { signalRuntime } from "../e2e/support/runtime-processes.ts";
import { cutFromApiServer, freezeContainer, rejoinApiServer, thawContainer } from "./node-faults.ts";

/** What a fault is made on. */
export interface Scene {
  readonly cluster: TestCluster;
  readonly primary: string;
  /** Number of the primary's node. */
  readonly node: number;
}

export interface Fault {
  readonly about: string;
  /** Makes the fault; resolves with what ends it, called after {@link holdSeconds}. */
  make(scene: Scene): Promise<() => Promise<unknown>>;
  /** How long the fault lasts. */
  readonly holdSeconds: number;
}

const nothing = async () => undefined;

const inPrimary = ({ cluster, primary }: Scene, script: string) =>
  kubectl(["exec", "-n", cluster.namespace, primary, "-c", "postgres", "--", "bash", "-c", script]);

/** Every fault by its name. */
export const faults: Readonly<Record<string, Fault>> = {
  "pod-deleted": {
    about: "the primary's pod is deleted by force",
    holdSeconds: 0,
    make: async ({ cluster, primary }) => {
      await kubectl(["delete", "pod", primary, "-n", cluster.namespace, "--force", "--grace-period=0"]);
      return nothing;
    },
  },
  "postmaster-killed": {
    about: "the postmaster is killed",
    holdSeconds: 0,
    make: async (scene) => {
      await inPrimary(scene, "kill -9 $(head -1 $PGDATA/postmaster.pid)");
      return nothing;
    },
  },
  "runtime-killed": {
    about: "the instance manager's runtime is killed",
    holdSeconds: 0,
    make: async (scene) => {
      await inPrimary(scene, signalRuntime("KILL"));
      return nothing;
    },
  },
  "runtime-stopped": {
    about: "the instance manager's runtime stands still (SIGSTOP)",
    holdSeconds: 20,
    make: async (scene) => {
      await inPrimary(scene, signalRuntime("STOP"));
      return nothing;
    },
  },
  "container-frozen": {
    about: "everything in the primary's container stands still for 25 s, longer than any lease",
    holdSeconds: 25,
    make: async (scene) => {
      const frozen = await freezeContainer(scene);
      return () => thawContainer(frozen);
    },
  },
  "node-cut-off": {
    about: "the primary's node loses its network for a minute",
    holdSeconds: 60,
    make: async ({ node }) => {
      await cutNode(node);
      return () => rejoinNode(node);
    },
  },
  "node-lost": {
    about: "the primary's node loses its power",
    holdSeconds: 60,
    make: async ({ node }) => {
      await powerOffNode(node);
      return () => startCluster(clusterFolders(stateFolder()), () => undefined);
    },
  },
  "api-server-unreachable": {
    about: "the primary's node does not reach the API server for 20 s, and everything else",
    holdSeconds: 20,
    make: async ({ node }) => {
      await cutFromApiServer(node);
      return () => rejoinApiServer(node);
    },
  },
  "api-server-away": {
    about: "the API server stands still for a minute",
    holdSeconds: 0,
    make: async () => {
      await freezeApiServer(60_000);
      return nothing;
    },
  },
  "operator-killed": {
    about: "the operator's pod is deleted by force together with the primary's",
    holdSeconds: 0,
    make: async ({ cluster, primary }) => {
      const byForce = ["--force", "--grace-period=0"];
      await Promise.all([
        kubectl(["delete", "pod", "-n", "cnpg-system", "-l", "app.kubernetes.io/name=cloudnative-pg", ...byForce]),
        kubectl(["delete", "pod", primary, "-n", cluster.namespace, ...byForce]),
      ]);
      return nothing;
    },
  },
  switchover: {
    about: "a planned switchover",
    holdSeconds: 0,
    make: async ({ cluster, primary }) => {
      const target = (await cluster.get()).status?.instanceNames?.find((name) => name !== primary) ?? "";
      await cluster.switchOver(target);
      return nothing;
    },
  },
  "node-drained": {
    about: "the primary's node is drained, and back after 20 s",
    holdSeconds: 20,
    make: async ({ node }) => {
      const name = `node-${node}`;
      // The writer of the open session stays: its output is looked at.
      const which = ["--pod-selector=cnpg.io/podRole=instance", "--delete-emptydir-data", "--timeout=120s"];
      await kubectl(["drain", name, "--force", ...which]);
      return () => kubectl(["uncordon", name]);
    },
  },
};
