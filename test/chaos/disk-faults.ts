import { emptyVolume, fillVolume, freezeVolume, killVolume, thawVolume } from "../../local/cluster/volume-faults.ts";
import { phases } from "../../src/api/phases.ts";
import { volumeHandle } from "../e2e/support/volumes.ts";
import { waitFor } from "../e2e/support/wait.ts";
import type { Fault, Scene } from "./fault.ts";
import { inInstance, renewPod } from "./in-instance.ts";

const handle = ({ cluster, primary }: Scene) => volumeHandle(cluster.namespace, primary.name);

/** Faults of the disk under the primary's data. */
export const diskFaults: Readonly<Record<string, Fault>> = {
  "disk-full": {
    about: "the primary's disk is full; 15 s after PostgreSQL stopped there is room again",
    holdSeconds: 15,
    scene: "loop",
    make: async (scene) => {
      const volume = await handle(scene);
      await fillVolume(volume);
      try {
        await untilFull(scene);
      } catch (error) {
        await emptyVolume(volume);
        throw error;
      }
      return () => emptyVolume(volume);
    },
  },
  "disk-dead": {
    about: "the primary's disk dies; after 40 s its pod is made anew, on a disk that works",
    holdSeconds: 40,
    scene: "loop",
    make: async (scene) => {
      await killVolume(await handle(scene));
      return () => renewPod(scene.cluster.namespace, scene.primary.name);
    },
  },
  "disk-hung": {
    about: "the primary's disk hangs for 40 s: who writes waits",
    holdSeconds: 40,
    scene: "loop",
    make: hang,
  },
  "disk-hung-briefly": {
    about: "the primary's disk hangs for 5 s, shorter than a dead one is recognised",
    holdSeconds: 5,
    scene: "loop",
    make: hang,
  },
};

/** Every write to the primary's disk waits, until the end. */
async function hang(scene: Scene): Promise<() => Promise<unknown>> {
  const volume = await handle(scene);
  await freezeVolume(volume);
  return () => thawVolume(volume);
}

/** Rows are small: new segments are asked for, which need room that is not there, until the operator says so. */
async function untilFull(scene: Scene): Promise<void> {
  const fill = `psql -X -q -d app -c "select pg_switch_wal(); create table if not exists filler (id int); insert into filler values (1)"`;
  await waitFor("the phase of a full disk", 120_000, async () => {
    // Ends with an error as soon as PostgreSQL does.
    await inInstance(scene, scene.primary, `for i in {1..10}; do timeout 10 ${fill} || break; done`).catch(
      () => undefined,
    );
    return (await scene.cluster.get()).status?.phase === phases.notEnoughDisk;
  });
}
