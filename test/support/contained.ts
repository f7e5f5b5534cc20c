import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { childrenOf } from "../../local/process/processes.ts";

export interface ContainedOptions {
  env: Record<string, string>;
  /** Runs the program as this user. @default the caller's */
  user?: { uid: number; gid: number } | undefined;
  stdio: SpawnOptions["stdio"];
  /** The program is the first process of its namespace itself, as a launcher is; else a shell is, which reaps orphans. */
  isInit?: boolean;
}

/** A program in a process namespace of its own, as in a container: nothing that it starts outlives it, or us. */
export interface Contained {
  /** Standard streams of the program; signals to this process do not reach it. */
  readonly process: ChildProcess;
  /** Exit code; 128 and more for a signal, or the signal's name. */
  readonly exit: Promise<number | string>;
  /** Kills everything in the namespace and resolves when the last process is gone. */
  kill(): Promise<void>;
}

/** Prefix that has the kernel kill a program when its parent ends, also after a change of user, which would undo it. */
export function dieWithParent(user?: { uid: number; gid: number }): string[] {
  const as = user ? [`--reuid=${user.uid}`, `--regid=${user.gid}`, "--clear-groups"] : [];
  return ["setpriv", ...as, "--pdeathsig=KILL", "--"];
}

// A parent that ended before its end was listened to will never be told of.
const onlyUnder = (parent: number) => ["sh", "-c", '[ "$PPID" = "$0" ] && exec "$@"', String(parent)];
// Not the last command, or the shell would become the program and reap nobody.
const reaper = ["sh", "-c", '"$@"; exit $?', "sh"];

/** Starts a program so that neither a failing test nor the end of this process, however it comes, leaves anything of it. */
export function spawnContained(command: readonly string[], options: ContainedOptions): Contained {
  const inside = [...(options.isInit ? [] : reaper), ...dieWithParent(options.user), ...command];
  const namespace = ["unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", "--", ...inside];
  const [program = "", ...args] = [...dieWithParent(), ...onlyUnder(process.pid), ...namespace];
  const child = spawn(program, args, { env: options.env, cwd: "/", stdio: options.stdio });
  let ended = false;
  const exit = new Promise<number | string>((resolve) => {
    const end = (result: number | string) => {
      ended = true;
      resolve(result);
    };
    child.once("error", (error) => end(error.message));
    child.once("close", (code, signal) => end(code ?? signal ?? "?"));
  });
  return {
    process: child,
    exit,
    async kill() {
      // With the first process its namespace goes, and `unshare` ends after that; killed itself, it would end before.
      for (;;) {
        const [init] = child.pid === undefined || ended ? [] : childrenOf(child.pid);
        if (init !== undefined) tryKill(init);
        if (init !== undefined || ended || child.pid === undefined) break;
        await sleep(5);
      }
      await exit;
    },
  };
}

function tryKill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It ended meanwhile.
  }
}
