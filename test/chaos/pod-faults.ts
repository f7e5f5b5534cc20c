import { signalRuntime } from "../e2e/support/runtime-processes.ts";
import { freezeContainer } from "./container-freezer.ts";
import { type Fault, nothing } from "./fault.ts";
import { deleteByForce, inInstance } from "./in-instance.ts";

/** Faults of the primary's pod and of its processes. */
export const podFaults: Readonly<Record<string, Fault>> = {
  "pod-deleted": {
    about: "the primary's pod is deleted by force",
    holdSeconds: 0,
    make: async ({ cluster, primary }) => {
      await deleteByForce(cluster.namespace, primary.name);
      return nothing;
    },
  },
  "postmaster-killed": {
    about: "the postmaster is killed",
    holdSeconds: 0,
    make: async (scene) => {
      await inInstance(scene, scene.primary, "kill -9 $(head -1 $PGDATA/postmaster.pid)");
      return nothing;
    },
  },
  "postmaster-stopped": {
    about: "the postmaster alone stands still for 30 s (SIGSTOP): sessions go on, no new one begins",
    holdSeconds: 30,
    make: async (scene) => {
      const signal = (name: string) =>
        inInstance(scene, scene.primary, `kill -${name} $(head -1 $PGDATA/postmaster.pid)`);
      await signal("STOP");
      // It may have been ended meanwhile, and its pod too.
      return () => signal("CONT").catch(() => undefined);
    },
  },
  "walsenders-stopped": {
    about: "the processes that send WAL to the standbys stand still for 20 s (SIGSTOP)",
    holdSeconds: 20,
    make: async (scene) => {
      const signal = (name: string) => inInstance(scene, scene.primary, signalWalSenders(name));
      await signal("STOP");
      return () => signal("CONT").catch(() => undefined);
    },
  },
  "runtime-killed": {
    about: "the instance manager's runtime is killed",
    holdSeconds: 0,
    make: async (scene) => {
      await inInstance(scene, scene.primary, signalRuntime("KILL"));
      return nothing;
    },
  },
  "runtime-stopped": {
    about: "the instance manager's runtime stands still (SIGSTOP)",
    holdSeconds: 20,
    make: async (scene) => {
      await inInstance(scene, scene.primary, signalRuntime("STOP"));
      return nothing;
    },
  },
  "processes-stopped": {
    about: "every process of the primary's container but the first stands still for 25 s (SIGSTOP), its network lives",
    holdSeconds: 25,
    make: async (scene) => {
      // To all that may be signalled but the sender; the first process of a container is out of its reach.
      const signal = (name: string) => inInstance(scene, scene.primary, `kill -${name} -1`);
      await signal("STOP");
      return () => signal("CONT").catch(() => undefined);
    },
  },
  "container-frozen": {
    about: "everything in the primary's container stands still for 25 s, longer than any lease",
    holdSeconds: 25,
    stopsLauncher: true,
    make: (scene) => freezeContainer(scene, scene.primary),
  },
  "container-frozen-briefly": {
    about: "everything in the primary's container stands still for 5 s, shorter than its right to write",
    holdSeconds: 5,
    make: (scene) => freezeContainer(scene, scene.primary),
  },
};

/** Fails when there is none: a fault that was not made proves nothing. */
const signalWalSenders = (signal: string) => `
pids=$(psql -X -A -t -c "select pid from pg_stat_replication where state = 'streaming'" -d postgres)
[ -n "$pids" ] && kill -${signal} $pids`;
