import { describe, expect, it } from "vitest";
import { VolumeCheck } from "../../../src/instance/isolation/volume-check.ts";
import type { RunResult } from "../../../src/ports/processes.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";

type Context = ConstructorParameters<typeof VolumeCheck>[0];

/** A context whose `dd` answers as told, with the count of its runs. */
function withDisk(answer: () => Promise<Partial<RunResult>>) {
  const commands: string[][] = [];
  const context = {
    clock: systemClock,
    files: { read: async () => "" },
    settings: { pgData: "/data/pgdata", walVolume: "/wal", tablespaces: "/tablespaces" },
    state: {},
    processes: {
      run: async (command: string, args: readonly string[]) => {
        commands.push([command, ...args]);
        return { code: 0, signal: null, stdout: "", stderr: "", ...(await answer()) };
      },
    },
  } as unknown as Context;
  return { commands, check: new VolumeCheck(context, 20) };
}

describe("the sign of life that is asked of volumes before the lease is taken", () => {
  it("is a write that comes back", async () => {
    const { check, commands } = withDisk(async () => ({}));
    expect(await check.reason()).toBeNull();
    expect(commands).toEqual([expect.arrayContaining(["dd", "of=/data/.cnpg-ts.probe", "conv=fsync"])]);
  });

  it("is missing on a dead disk, and there on a full one", async () => {
    const dead = withDisk(async () => ({ code: 1, stderr: "dd: failed to open: Input/output error" }));
    expect(await dead.check.reason()).toMatch(/\/data takes no writes: .*Input\/output error/);
    const full = withDisk(async () => ({ code: 1, stderr: "dd: error writing: No space left on device" }));
    expect(await full.check.reason()).toBeNull();
  });

  it("is waited for on a disk that hangs, with one write for however many questions", async () => {
    let wake: () => void = () => undefined;
    const { check, commands } = withDisk(
      () =>
        new Promise((resolve) => {
          wake = () => resolve({});
        }),
    );
    expect(await check.reason()).toMatch(/no write to \/data came back/);
    expect(await check.reason()).toMatch(/no write to \/data came back/);
    expect(commands).toHaveLength(1);
    const last = check.reason();
    await new Promise((resolve) => setImmediate(resolve));
    wake();
    expect(await last).toBeNull();
  });

  it("says nothing against a disk where the program is missing", async () => {
    const { check } = withDisk(() => Promise.reject(new Error("spawn dd ENOENT")));
    expect(await check.reason()).toBeNull();
  });
});
