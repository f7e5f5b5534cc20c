import { describe, expect, it } from "vitest";
import { choosePort } from "../../../local/process/free-port.ts";
import { identify, isAlive, parseStartTime, signal } from "../../../local/process/identity.ts";
import { parseParent } from "../../../local/process/processes.ts";
import { sessionDescendants } from "../../../local/process/session.ts";

// Fields 1 to 22 of /proc/PID/stat, with a name that holds what separates fields.
const stat = (state: string) =>
  `77 (a) b (c) ${state} 42 77 70 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 2703360 100`;

describe("a process's identity", () => {
  it("reads start time and parent past any name", () => {
    expect(parseStartTime(stat("S"))).toBe("987654");
    expect(parseParent(stat("S"))).toBe(42);
  });

  it("takes a zombie for dead", () => {
    expect(parseStartTime(stat("Z"))).toBeUndefined();
  });

  it("tells a process from a later one with its number", () => {
    const self = identify(process.pid);
    if (!self) throw new Error("this process runs");
    expect(isAlive(self)).toBe(true);
    const later = { ...self, startTime: "1" };
    expect(isAlive(later)).toBe(false);
    expect(signal(later, "SIGKILL")).toBe(false);
  });
});

describe("the port", () => {
  it("stays the preferred one while that is free", async () => {
    expect(await choosePort(20_000, async () => true)).toBe(20_000);
  });

  it("is another when somebody has it", async () => {
    const taken = new Set([20_000, 20_001]);
    const random = [20_001, 20_002][Symbol.iterator]();
    const port = await choosePort(
      20_000,
      async (candidate) => !taken.has(candidate),
      () => random.next().value ?? 0,
    );
    expect(port).toBe(20_002);
  });

  it("is below the range of outgoing connections", async () => {
    for (let attempt = 0; attempt < 50; attempt++) {
      const port = await choosePort(undefined, async () => true);
      expect(port).toBeGreaterThanOrEqual(18_000);
      expect(port).toBeLessThan(30_000);
    }
  });

  it("is a failure, not a loop, when none is free", async () => {
    await expect(choosePort(undefined, async () => false)).rejects.toThrow(/no free loopback port/);
  });
});

describe("what an interrupt ends", () => {
  it("is all descendants in the same session, not those that were detached, nor others", () => {
    const entries = [
      { pid: 10, parent: 1, session: 5 },
      { pid: 11, parent: 10, session: 5 },
      { pid: 12, parent: 11, session: 5 },
      { pid: 20, parent: 10, session: 20 },
      { pid: 21, parent: 20, session: 20 },
      { pid: 30, parent: 1, session: 5 },
    ];
    expect(sessionDescendants(entries, 10)).toEqual([11, 12]);
  });
});
