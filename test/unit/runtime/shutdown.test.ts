import { EventEmitter } from "node:events";
import { describe, expect, it } from "vitest";
import { runUntilSignal } from "../../../src/runtime/shutdown.ts";
import { captureLogs } from "../../support/log-capture.ts";

class FakeHost extends EventEmitter {
  exits: number[] = [];
  exit(code: number) {
    this.exits.push(code);
  }
}

const untilAborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));

describe("runUntilSignal", () => {
  it("ends with 0 after a signal and leaves no handler behind", async () => {
    const host = new FakeHost();
    const ended = runUntilSignal(untilAborted, { logger: captureLogs().logger, host });
    host.emit("SIGTERM");
    expect(await ended).toBe(0);
    expect(host.listenerCount("SIGTERM") + host.listenerCount("SIGINT")).toBe(0);
    expect(host.exits).toEqual([]);
  });

  it("exits at once on a second signal", async () => {
    const host = new FakeHost();
    void runUntilSignal(() => new Promise(() => undefined), { logger: captureLogs().logger, host });
    host.emit("SIGTERM");
    host.emit("SIGINT");
    expect(host.exits).toEqual([1]);
  });

  it("ends with 1 and a log line when the program fails, also while stopping", async () => {
    for (const signalled of [false, true]) {
      const logs = captureLogs();
      const host = new FakeHost();
      const ended = runUntilSignal(
        async (signal) => {
          if (signalled) await untilAborted(signal);
          throw new Error("broken");
        },
        { logger: logs.logger, host },
      );
      if (signalled) host.emit("SIGTERM");
      expect(await ended).toBe(1);
      expect(logs.messages("error")).toEqual(["Program failed"]);
    }
  });

  it("counts the abort itself as a clean end", async () => {
    const host = new FakeHost();
    const ended = runUntilSignal(
      async (signal) => {
        await untilAborted(signal);
        throw signal.reason;
      },
      { logger: captureLogs().logger, host },
    );
    host.emit("SIGINT");
    expect(await ended).toBe(0);
  });
});
