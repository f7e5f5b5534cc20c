import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { encodeFrame, FrameReader } from "../../../src/process/frame.ts";
import { LauncherChannel } from "../../../src/process/launcher-channel.ts";

/** The launcher's side of the channel, in memory. */
class FakeLauncher extends EventEmitter {
  readonly sent: string[][] = [];
  readonly #reader = new FrameReader();
  answer: (frame: string[]) => string[] | undefined = () => undefined;

  write(data: Uint8Array): void {
    for (const frame of this.#reader.push(data)) {
      this.sent.push(frame);
      const answer = this.answer(frame);
      if (answer) queueMicrotask(() => this.tell(...answer));
    }
  }

  tell(...fields: string[]): void {
    this.emit("data", encodeFrame(fields));
  }
}

function connect(): { launcher: FakeLauncher; channel: LauncherChannel } {
  const launcher = new FakeLauncher();
  return { launcher, channel: new LauncherChannel(launcher) };
}

test("hello tells the running postmaster and a signal that came too early", async () => {
  const { launcher, channel } = connect();
  launcher.answer = () => ["hello", "1", "42", "TERM", "", "0"];
  expect(await channel.hello()).toEqual({ postmasterPid: 42, pendingSignal: "TERM" });
  expect(launcher.sent).toEqual([["hello", "1"]]);
  launcher.answer = () => ["hello", "1", "0", "", "", "0"];
  expect(await channel.hello()).toEqual({ postmasterPid: undefined, pendingSignal: undefined });
});

test("another protocol is refused", async () => {
  const { launcher, channel } = connect();
  launcher.answer = () => ["hello", "2", "0", "", "", "0"];
  await expect(channel.hello()).rejects.toThrow(/protocol 2/);
});

test("drain-stop tells the spill", async () => {
  const { launcher, channel } = connect();
  launcher.answer = () => ["drained", "/controller/ipc/spill", "3"];
  expect(await channel.takeLogs()).toEqual({ path: "/controller/ipc/spill", droppedLines: 3 });
  launcher.answer = () => ["drained", "", "0"];
  expect(await channel.takeLogs()).toEqual({ path: undefined, droppedLines: 0 });
});

test("spawn sends arguments and environment and matches answers by id", async () => {
  const { launcher, channel } = connect();
  // What the launcher set for the runtime alone stays here.
  const env = { A: "1", B: "x=y", MALLOC_ARENA_MAX: "1", MALLOC_TRIM_THRESHOLD_: "131072", CNPG_LAUNCHER_FD: "3" };
  const first = channel.spawn({ cwd: "/", argv: ["postgres", "-D", "/data"], env });
  const second = channel.spawn({ cwd: "/", argv: ["postgres"], env: {} });
  expect(launcher.sent[0]).toEqual(["spawn", "1", "/", "3", "postgres", "-D", "/data", "A=1", "B=x=y"]);
  launcher.tell("error", "2", "one is running");
  launcher.tell("spawned", "1", "77");
  expect(await first).toBe(77);
  await expect(second).rejects.toThrow("launcher did not start postgres: one is running");
});

test("an exit is told, and one that came before anyone listened is not lost", () => {
  const { launcher, channel } = connect();
  launcher.tell("postmaster-exited", "77", "-1", "9");
  const exits: unknown[] = [];
  const stop = channel.onPostmasterExit((exit) => exits.push(exit));
  launcher.tell("postmaster-exited", "78", "1", "0");
  stop();
  expect(exits).toEqual([
    { pid: 77, code: null, signal: 9 },
    { pid: 78, code: 1, signal: 0 },
  ]);
});

test("deadlines are whole milliseconds and never negative", () => {
  const { launcher, channel } = connect();
  channel.setDeadline(9_500.4);
  channel.setDeadline(-3);
  expect(launcher.sent).toEqual([
    ["deadline", "9500"],
    ["deadline", "0"],
  ]);
});

test("the end of the channel fails what waits and everything after", async () => {
  const { launcher, channel } = connect();
  const waiting = channel.hello();
  launcher.emit("close");
  await expect(waiting).rejects.toThrow("launcher channel closed");
  await expect(channel.takeLogs()).rejects.toThrow("launcher channel closed");
  expect(() => channel.setDeadline(1)).toThrow("launcher channel closed");
  await channel.lost;
});

test("a broken frame ends the channel", async () => {
  const { launcher, channel } = connect();
  launcher.emit("data", Buffer.from([0xff, 0xff, 0xff, 0xff]));
  await channel.lost;
  await expect(channel.hello()).rejects.toThrow(/longer than/);
});

test("exit resolves only when the launcher is gone", async () => {
  const { launcher, channel } = connect();
  const exit = channel.exit(4);
  expect(launcher.sent).toEqual([["exit", "4"]]);
  launcher.emit("close");
  await exit;
});

test("probes are answered once every folder took a write; a later request takes the place of an earlier one", async () => {
  const { launcher, channel } = connect();
  const first = channel.probeVolumes(["/a", "/b"], 10_000.4);
  expect(launcher.sent.at(-1)).toEqual(["probe", "1", "10000", "/a", "/b"]);
  const second = channel.probeVolumes(["/a"], 500);
  await expect(first).rejects.toThrow(/took the place/);
  launcher.tell("probed", "1");
  launcher.tell("probed", "2");
  await second;
  launcher.answer = (frame) => ["probed", frame[1] ?? ""];
  await channel.probeVolumes([], 0);
  expect(launcher.sent.at(-1)).toEqual(["probe", "3", "0"]);
});

test("a note is kept by the launcher, and told to the next runtime", async () => {
  const { launcher, channel } = connect();
  launcher.answer = ([verb, id = ""]) => [verb === "keep" ? "kept" : "other", id];
  await channel.keep('{"a":1}');
  expect(launcher.sent.at(-1)).toEqual(["keep", "1", '{"a":1}']);
  launcher.answer = () => ["hello", "1", "42", "", "", "0", "9000", "", '{"a":1}'];
  expect(await channel.hello()).toMatchObject({ postmasterPid: 42, deadlineMs: 9_000, note: '{"a":1}' });
});
