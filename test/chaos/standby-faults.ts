import { killVolume } from "../../local/cluster/volume-faults.ts";
import { volumeHandle } from "../e2e/support/volumes.ts";
import { freezeContainer } from "./container-freezer.ts";
import { type Fault, nothing, type PlacedInstance, type Scene } from "./fault.ts";
import { deleteByForce, renewPod } from "./in-instance.ts";

/** Faults of standbys, which a primary goes on without as far as its synchronous replication lets it. */
export const standbyFaults: Readonly<Record<string, Fault>> = {
  "standby-deleted": {
    about: "the pod of one standby is deleted by force",
    holdSeconds: 0,
    make: async (scene) => {
      await deleteByForce(scene.cluster.namespace, firstStandby(scene).name);
      return nothing;
    },
  },
  "standbys-deleted": {
    about: "the pods of all standbys are deleted by force",
    holdSeconds: 0,
    make: async ({ cluster, standbys }) => {
      await deleteByForce(cluster.namespace, ...standbys.map(({ name }) => name));
      return nothing;
    },
  },
  "standby-frozen": {
    about: "everything in one standby's container stands still for 25 s",
    holdSeconds: 25,
    make: (scene) => freezeContainer(scene, firstStandby(scene)),
  },
  "standby-disk-dead": {
    about: "the disk of one standby dies; after 30 s its pod is made anew, on a disk that works",
    holdSeconds: 30,
    scene: "loop",
    make: async (scene) => {
      const { namespace } = scene.cluster;
      const { name } = firstStandby(scene);
      await killVolume(await volumeHandle(namespace, name));
      return () => renewPod(namespace, name);
    },
  },
};

function firstStandby({ standbys: [standby] }: Scene): PlacedInstance {
  if (!standby) throw new Error("the cluster has no standby");
  return standby;
}
