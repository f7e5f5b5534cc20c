import { describe, expect, it } from "vitest";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import { annotations } from "../../../src/api/labels.ts";
import type { InstanceState } from "../../../src/instance/instance-state.ts";
import { probedHost } from "../../../src/instance/isolation/probed-host.ts";
import { VolumeWatch } from "../../../src/instance/isolation/volume-watch.ts";
import type { PostmasterExit, PostmasterHost } from "../../../src/ports/postmaster-host.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { captureLogs } from "../../support/log-capture.ts";

/** A launcher that notes what it is asked for and answers as told. */
function world(options: { seconds?: string } = {}) {
  const clock = createFakeClock();
  const requests: { folders: readonly string[]; limitMs: number; alive: () => void }[] = [];
  let exited: (exit: PostmasterExit) => void = () => undefined;
  const events: string[] = [];
  const host = {
    probeVolumes: (folders: readonly string[], limitMs: number) =>
      new Promise<void>((resolve) => {
        events.push(limitMs > 0 ? "probe" : "end");
        requests.push({ folders, limitMs, alive: resolve });
        if (limitMs === 0) resolve();
      }),
    spawn: async () => {
      events.push("spawn");
      return 7;
    },
    onPostmasterExit: (handler: (exit: PostmasterExit) => void) => {
      exited = handler;
      return () => undefined;
    },
  } as unknown as PostmasterHost;
  const noted = options.seconds === undefined ? {} : { [annotations.diskProbeSeconds]: options.seconds };
  const context = {
    clock,
    logger: captureLogs().logger,
    files: { read: async () => "1 0 0:1 / /wal rw - ext4 /dev/x rw" },
    settings: { pgData: "/data/pgdata", walVolume: "/wal", tablespaces: "/tablespaces" },
    state: {
      silentVolumes: undefined as InstanceState["silentVolumes"],
      cluster: { metadata: { annotations: noted }, spec: { instances: 3 } } as unknown as Cluster,
    },
  };
  const watch = new VolumeWatch(context as unknown as ConstructorParameters<typeof VolumeWatch>[0], host);
  const last = () => requests.at(-1) ?? { folders: [], limitMs: -1, alive: () => undefined };
  return { watch, host, context, requests, last, events, clock, exit: (exit: PostmasterExit) => exited(exit) };
}

describe("the probes of the volumes", () => {
  it("go on from before the right is taken until neither it nor a server is left, without a gap", async () => {
    const { watch, host, requests, last, events, exit } = world();
    const probed = probedHost(host, watch);
    probed.onPostmasterExit(() => events.push("exit"));
    await watch.stake("claim", true);
    await watch.stake("right", true);
    await watch.stake("claim", false);
    await probed.spawn({ cwd: "/", argv: [], env: {} });
    exit({ pid: 7, code: 0, signal: 0 });
    expect(events).toEqual(["probe", "spawn", "exit"]);
    expect(last()).toMatchObject({ folders: ["/data"], limitMs: 10_000 });
    await watch.stake("right", false);
    expect(requests).toHaveLength(2);
    expect(last().limitMs).toBe(0);
  });

  it("begin before a standby's server that has no right, and end when it can't be started", async () => {
    const { watch, host, events } = world();
    const failing = probedHost({ ...host, spawn: () => Promise.reject(new Error("no")) }, watch);
    await expect(failing.spawn({ cwd: "/", argv: [], env: {} })).rejects.toThrow("no");
    expect(events).toEqual(["probe", "end"]);
  });

  it("are ended once by a manager that comes up beside nothing, whatever the one before it asked for", async () => {
    const { watch, events } = world();
    await watch.stake("server", false);
    await watch.follow();
    expect(events).toEqual(["end"]);
  });

  it("follow the Cluster: other volumes, another limit, none at all", async () => {
    const { watch, context, last, requests } = world();
    await watch.stake("server", true);
    context.state.cluster.spec.walStorage = { size: "1Gi" };
    await watch.follow();
    await watch.follow();
    expect(requests).toHaveLength(2);
    expect(last().folders).toEqual(["/data", "/wal"]);
    context.state.cluster.metadata.annotations = { [annotations.diskProbeSeconds]: "0" };
    await watch.follow();
    expect(last().limitMs).toBe(0);
    expect(await watch.silence()).toBeNull();
  });
});

describe("the first sign of life, before the right is taken", () => {
  it("is a write that comes back from every volume", async () => {
    const { watch, last } = world();
    await watch.stake("claim", true);
    const asked = watch.silence();
    last().alive();
    expect(await asked).toBeNull();
  });

  it("is missing on a disk that hangs, well before anything is killed, and comes with the disk", async () => {
    const { watch, clock, last } = world({ seconds: "4" });
    await watch.stake("claim", true);
    const asked = watch.silence();
    await clock.advance(2_000);
    expect(await asked).toMatch(/no write to \/data came back within 2 s/);
    const again = watch.silence();
    last().alive();
    expect(await again).toBeNull();
  });

  it("is not known when the launcher is gone", async () => {
    const { context } = world();
    const host = { probeVolumes: () => Promise.reject(new Error("launcher channel closed")) };
    const watch = new VolumeWatch(context as unknown as ConstructorParameters<typeof VolumeWatch>[0], host);
    await watch.stake("claim", true);
    expect(await watch.silence()).toMatch(/does not tell whether \/data take writes: launcher channel closed/);
  });
});

describe("volumes for which everything was killed", () => {
  it("are looked at one by one until all take writes, and what hangs is known meanwhile", async () => {
    const { watch, context, clock, last, requests } = world();
    context.state.cluster.spec.walStorage = { size: "1Gi" };
    await watch.noteKill();
    expect(context.state.silentVolumes).toEqual({ folders: ["/data", "/wal"], sinceMs: clock.monotonicMs() });
    const killedAt = clock.monotonicMs();
    const recovered = watch.recover(new AbortController().signal);
    await clock.advance(0);
    expect(last()).toMatchObject({ folders: ["/data"], limitMs: 10_000 });
    // Half of the limit, so that nothing is killed for a look.
    await clock.advance(5_000);
    expect(last()).toMatchObject({ folders: ["/wal"] });
    last().alive();
    await clock.advance(0);
    expect(context.state.silentVolumes).toEqual({ folders: ["/data"], sinceMs: killedAt });
    expect(last().limitMs).toBe(0);
    await clock.advance(2_000);
    for (const folder of ["/data", "/wal"]) {
      expect(last()).toMatchObject({ folders: [folder] });
      last().alive();
      await clock.advance(0);
    }
    await recovered;
    expect(context.state.silentVolumes).toBeUndefined();
    expect(last().limitMs).toBe(0);
    const count = requests.length;
    await watch.recover(new AbortController().signal);
    expect(requests).toHaveLength(count);
  });

  it("are forgotten when nobody wants them probed any more", async () => {
    const { watch, context } = world({ seconds: "0" });
    await watch.noteKill();
    await watch.recover(new AbortController().signal);
    expect(context.state.silentVolumes).toBeUndefined();
  });

  it("are looked at until the end of the process at most", async () => {
    const { watch, context, clock } = world();
    await watch.noteKill();
    const stop = new AbortController();
    const recovered = watch.recover(stop.signal);
    stop.abort();
    await clock.advance(5_000);
    await recovered;
    expect(context.state.silentVolumes).toMatchObject({ folders: ["/data"] });
  });
});
