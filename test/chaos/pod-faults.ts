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
    make: once("kill -9 $(head -1 $PGDATA/postmaster.pid)"),
  },
  "postmaster-stopped": {
    about: "the postmaster alone stands still for 30 s (SIGSTOP): sessions go on, no new one begins",
    holdSeconds: 30,
    make: stopped((signal) => `kill -${signal} $(head -1 $PGDATA/postmaster.pid)`),
  },
  "walsenders-stopped": {
    about: "the processes that send WAL to the standbys stand still for 20 s (SIGSTOP)",
    holdSeconds: 20,
    make: stopped(signalWalSenders),
  },
  "runtime-killed": {
    about: "the instance manager's runtime is killed",
    holdSeconds: 0,
    make: once(signalRuntime("KILL")),
  },
  "runtime-stopped": {
    about: "the instance manager's runtime stands still (SIGSTOP)",
    holdSeconds: 20,
    make: once(signalRuntime("STOP")),
  },
  "processes-stopped": {
    about: "every process of the primary's container but the first stands still for 25 s (SIGSTOP), its network lives",
    holdSeconds: 25,
    // To all that may be signalled but the sender; the first process of a container is out of its reach.
    make: stopped((signal) => `kill -${signal} -1`),
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

/** Runs a script in the primary's container; nothing has to be ended. */
function once(script: string): Fault["make"] {
  return async (scene) => {
    await inInstance(scene, scene.primary, script);
    return nothing;
  };
}

/** Stops processes of the primary's container by the script that sends a signal, and lets them go on in the end. */
function stopped(script: (signal: string) => string): Fault["make"] {
  return async (scene) => {
    const send = (signal: string) => inInstance(scene, scene.primary, script(signal));
    await send("STOP");
    // They may have been ended meanwhile, and the pod too.
    return () => send("CONT").catch(() => undefined);
  };
}

/** Fails when there is none: a fault that was not made proves nothing. */
function signalWalSenders(signal: string): string {
  return `
pids=$(psql -X -A -t -c "select pid from pg_stat_replication where state = 'streaming'" -d postgres)
[ -n "$pids" ] && kill -${signal} $pids`;
}
