import { spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { expect, test } from "vitest";
import type { InstanceContext } from "../../../src/instance/instance-context.ts";
import { Postmaster } from "../../../src/instance/postmaster.ts";
import type { PostmasterExit } from "../../../src/ports/postmaster-host.ts";
import { encodeFrame, FrameReader } from "../../../src/process/frame.ts";
import { LauncherChannel } from "../../../src/process/launcher-channel.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { captureLogs } from "../../support/log-capture.ts";

/** A number that no process of this machine has. */
const unusedPid = 2 ** 22 + 7;

class FakeLauncher extends EventEmitter {
  readonly #reader = new FrameReader();
  /** What the next request is answered with, in one piece. */
  next: string[][] = [];

  write(data: Uint8Array): void {
    for (const _frame of this.#reader.push(data)) queueMicrotask(() => this.tell(...this.next));
  }

  tell(...frames: string[][]): void {
    this.emit("data", Buffer.concat(frames.map((frame) => encodeFrame(frame))));
  }
}

function world() {
  const launcher = new FakeLauncher();
  const channel = new LauncherChannel(launcher);
  const context = {
    settings: { environment: {}, postgresName: "/bin/true" },
    paths: { pgData: "/no/such/data", socketDir: "/no/such/run", postmasterPid: "/no/such/pid" },
    state: { cluster: undefined },
    data: { logControl: async () => undefined },
    files: { chmod: async () => undefined, makeDirectory: async () => undefined, exists: async () => false },
    clock: createFakeClock(),
    logger: captureLogs().logger,
  } as unknown as InstanceContext;
  const postmaster = new Postmaster(context, channel);
  const exits: PostmasterExit[] = [];
  postmaster.onExit((exit) => exits.push(exit));
  return { launcher, postmaster, exits };
}

test("an exit that comes in one piece with the answer to spawn is reported", async () => {
  const { launcher, postmaster, exits } = world();
  launcher.next = [
    ["spawned", "1", String(unusedPid)],
    ["postmaster-exited", String(unusedPid), "1", "0"],
  ];
  await postmaster.start();
  expect(exits).toEqual([{ pid: unusedPid, code: 1, signal: 0 }]);
  expect(postmaster.pid).toBeUndefined();
  await postmaster.exited();
});

test("an exit that comes before the adoption is reported by it", () => {
  const { launcher, postmaster, exits } = world();
  launcher.tell(["postmaster-exited", String(unusedPid), "-1", "9"]);
  postmaster.adopt(unusedPid);
  expect(exits).toEqual([{ pid: unusedPid, code: null, signal: 9 }]);
  expect(postmaster.pid).toBeUndefined();
});

test("an old exit is not taken for that of a later postmaster with the same number", async () => {
  const { launcher, postmaster, exits } = world();
  launcher.tell(["postmaster-exited", String(unusedPid), "0", "0"]);
  launcher.next = [["spawned", "1", String(unusedPid)]];
  await postmaster.start();
  expect(exits).toEqual([]);
  expect(postmaster.pid).toBe(unusedPid);
});

test("a postmaster that is gone when it is signalled counts as ended, once", async () => {
  const { launcher, postmaster, exits } = world();
  const child = spawn("/bin/true");
  await once(child, "exit");
  const pid = child.pid as number;
  postmaster.adopt(pid);
  const exited = postmaster.exited();
  postmaster.stop("fast");
  await exited;
  launcher.tell(["postmaster-exited", String(pid), "0", "0"]);
  expect(exits).toEqual([{ pid, code: null, signal: 0 }]);
});
