import { existsSync } from "node:fs";
import { removeSockets } from "../object-store/local-store.ts";
import type { ProcessIdentity } from "../process/identity.ts";
import { enterArguments, holdsNamespaces } from "../process/namespaces.ts";
import { tryRun } from "../process/run.ts";
import { type Report, step } from "../terminal/progress.ts";
import type { ClusterFolders } from "./folders.ts";
import { thawLoopDevices, waitForLoopDevices } from "./loop-devices.ts";
import { destroyMachine } from "./machine.ts";
import { interruptStarter } from "./starter.ts";
import { readState, writeState } from "./state.ts";

/** How long everything inside may take to end by itself, in seconds. */
const graceSeconds = 5;

/** Stops the local cluster; nothing is left but its folder, from which the next start goes on. */
export async function stopCluster(folders: ClusterFolders, report: Report): Promise<boolean> {
  if (!existsSync(folders.root)) return false;
  await interruptStarter(folders);
  const state = readState(folders.stateFile);
  const machine = state.machine;
  const running = machine !== undefined && holdsNamespaces(machine);
  await step(
    report,
    running ? "Stopping the local cluster" : "Removing what is left of the local cluster",
    "",
    async () => {
      await thawLoopDevices(folders.root);
      if (running) await askToEnd(machine);
      await destroyMachine(folders, state);
      await waitForLoopDevices(folders.root);
      removeSockets(folders.root);
      writeState(folders.stateFile, state);
    },
  );
  return running;
}

/**
 * As a machine that shuts down does: first those that would start things again, then everyone; then we wait for those
 * who write data. The names are looked up inside the cluster's own process namespace.
 */
async function askToEnd(machine: ProcessIdentity): Promise<void> {
  const script = [
    "trap '' TERM",
    // Cut short: it would wait for its watchers, and etcd in turn for it.
    "pkill -KILL -x 'kubelet|kube-apiserver'",
    "kill -TERM -1",
    // A fast shutdown of PostgreSQL: the next start needs no recovery.
    "pkill -INT -x postgres",
    `for i in $(seq ${graceSeconds * 10}); do pgrep -x 'etcd|postgres' >/dev/null || exit 0; sleep 0.1; done`,
  ].join("; ");
  await tryRun("nsenter", enterArguments(machine.pid, ["sh", "-c", script]), { timeoutMs: 20_000 });
}
