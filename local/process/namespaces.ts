import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync, readlinkSync } from "node:fs";
import { identify, isAlive, type ProcessIdentity } from "./identity.ts";
import { childrenOf } from "./processes.ts";
import { waitFor } from "./wait.ts";

/**
 * Starts a program as the first process of new network, mount and process namespaces and leaves it running.
 * When it is killed the kernel ends every process in them, and with the last one mounts, links and rules go.
 * Resolves with that first process as seen from here.
 */
export async function startNamespaces(command: readonly string[], logFile: string): Promise<ProcessIdentity> {
  const log = openSync(logFile, "a");
  const child = spawn(
    "unshare",
    [
      "--net",
      "--mount",
      "--pid",
      "--fork",
      "--kill-child=SIGKILL",
      "--mount-proc",
      // Unmounts outside reach us, so that nothing of the machine is kept busy; ours never get out.
      "--propagation=slave",
      "--",
      ...command,
    ],
    { detached: true, stdio: ["ignore", log, log], cwd: "/" },
  );
  closeSync(log);
  let failure: string | undefined;
  child.once("error", (error) => {
    failure = error.message;
  });
  child.once("exit", (code) => {
    failure = `unshare ended with ${code}, see ${logFile}`;
  });
  let first: ProcessIdentity | undefined;
  await waitFor(
    "new namespaces",
    async () => {
      if (child.pid === undefined) return false;
      const [pid] = childrenOf(child.pid);
      first = pid === undefined ? undefined : identify(pid);
      // Before the program runs, /proc is not mounted yet and nsenter would find the old one.
      return first !== undefined && commandOf(first.pid) === command[0];
    },
    { timeoutMs: 10_000, everyMs: 20, failure: () => failure },
  );
  child.unref();
  if (!first) throw new Error("new namespaces: no first process");
  return first;
}

/** Whether that process still holds its namespaces: one that was just killed shows up for a while without them. */
export function holdsNamespaces(first: ProcessIdentity): boolean {
  try {
    return readlinkSync(`/proc/${first.pid}/ns/net`) !== "" && isAlive(first);
  } catch (error) {
    // Only root may look closer.
    return (error as NodeJS.ErrnoException).code === "EACCES" && isAlive(first);
  }
}

/** Arguments of nsenter to run a program in all namespaces of that process. */
export function enterArguments(pid: number, command: readonly string[] = []): string[] {
  return ["--target", String(pid), "--net", "--mount", "--pid", "--", ...command];
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0")[0] ?? "";
  } catch {
    return "";
  }
}
