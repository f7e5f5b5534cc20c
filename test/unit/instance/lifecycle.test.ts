import { describe, expect, test, vi } from "vitest";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import type { InstanceContext } from "../../../src/instance/instance-context.ts";
import { createInstanceState, mightBeUnavailable, reportsUnavailable } from "../../../src/instance/instance-state.ts";
import { Lifecycle } from "../../../src/instance/lifecycle.ts";
import type { Postmaster } from "../../../src/instance/postmaster.ts";
import type { PrimaryLease } from "../../../src/instance/primary-lease.ts";
import type { StopMode } from "../../../src/plan/instance/shutdown.ts";
import type { PostmasterExit } from "../../../src/ports/postmaster-host.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { captureLogs } from "../../support/log-capture.ts";

/** A disk that does not answer. */
const never = new Promise<never>(() => undefined);

/** A postmaster whose start takes 100 ms and whose stop takes none. */
function world(
  options: {
    role?: () => Promise<"primary" | "standby">;
    logged?: Promise<void>;
    control?: Promise<object>;
    /** The API server's answer to the lease's first way back. */
    givenBack?: Promise<void>;
  } = {},
) {
  const clock = createFakeClock();
  const logs = captureLogs();
  const state = createInstanceState();
  const target = (name: string) => {
    state.cluster = {
      metadata: {},
      spec: {},
      status: { currentPrimary: "c-1", targetPrimary: name },
    } as unknown as Cluster;
  };
  target("c-1");
  const right = { held: true };
  const events: string[] = [];
  const exits = new Set<(exit: PostmasterExit) => void>();
  const postmaster = {
    pid: undefined as number | undefined,
    onExit(handler: (exit: PostmasterExit) => void) {
      exits.add(handler);
      return () => exits.delete(handler);
    },
    adopt(pid: number) {
      postmaster.pid = pid;
    },
    async start() {
      events.push("starting");
      await clock.sleep(100);
      postmaster.pid = 7;
      events.push("started");
    },
    stop(mode: StopMode) {
      events.push(`stop ${mode}`);
      postmaster.end();
    },
    end() {
      postmaster.pid = undefined;
      for (const handler of [...exits]) handler({ pid: 7, code: 0, signal: 0 });
    },
    signal: () => undefined,
    exited: () =>
      new Promise<void>((resolve) => {
        exits.add(() => resolve());
      }),
    waitUntilAccepting: async () => postmaster.pid !== undefined,
  };
  const lease = {
    get held() {
      return right.held;
    },
    onLost: () => undefined,
    async release(walEnd?: string) {
      // What is on its way back already is nothing to be given back again.
      if (options.givenBack && events.includes("giving back")) return;
      if (options.givenBack) events.push("giving back");
      await options.givenBack;
      events.push(walEnd ? `released at ${walEnd}` : "released");
    },
  };
  const context = {
    settings: { podName: "c-1" },
    paths: { pgWal: "/nowhere/pg_wal" },
    state,
    clock,
    logger: logs.logger,
    localSessions: new Set(),
    sql: { connect: () => Promise.reject(new Error("no server")) },
    data: {
      knownRole: undefined,
      role: options.role ?? (async () => "primary"),
      tryControl: () => options.control ?? Promise.resolve(undefined),
      logControl: () => options.logged ?? Promise.resolve(),
    },
  } as unknown as InstanceContext;
  const lifecycle = new Lifecycle({
    context,
    postmaster: postmaster as unknown as Postmaster,
    lease: lease as unknown as PrimaryLease,
    wake: () => undefined,
    finish: async (code) => void events.push(`end ${code}`),
  });
  return { clock, lifecycle, postmaster, events, right, target, state, logs };
}

/** Lets what is under way come to its next timer, then moves the fake timers. */
async function advance(clock: ReturnType<typeof createFakeClock>, ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 20));
  await clock.advance(ms);
}

/** Moves the fake timers until the work is done, however long its real I/O takes on a busy machine. */
async function finished(clock: ReturnType<typeof createFakeClock>, work: Promise<unknown>): Promise<void> {
  let isDone = false;
  const note = () => {
    isDone = true;
  };
  work.then(note, note);
  while (!isDone) await advance(clock, 100);
  await work;
}

/** Waits for the real I/O of a start (the look at the WAL volume), however busy the machine is. */
function begun(events: readonly string[]): Promise<void> {
  return vi.waitFor(() => expect(events).toContain("starting"), { timeout: 10_000, interval: 5 });
}

describe("Lifecycle", () => {
  test("a primary's folder is not started once the lease lapsed or the target moved", async () => {
    const { lifecycle, right, target, events } = world();
    right.held = false;
    expect(await lifecycle.start()).toBe(false);
    right.held = true;
    target("c-2");
    expect(await lifecycle.start()).toBe(false);
    expect(events).toEqual([]);
  });

  test("two starts at once are one", async () => {
    const { lifecycle, clock, events } = world();
    const both = Promise.all([lifecycle.start(), lifecycle.start()]);
    await begun(events);
    await advance(clock, 200);
    expect(await both).toEqual([true, true]);
    expect(events).toEqual(["starting", "started"]);
  });

  test("a stop during a start follows it to its process and stops that", async () => {
    const { lifecycle, clock, events, postmaster } = world();
    const start = lifecycle.start();
    await begun(events);
    await advance(clock, 50);
    const stop = lifecycle.stop("leaseLost");
    await advance(clock, 200);
    await Promise.all([start, stop]);
    expect(events).toEqual(["starting", "started", "stop immediate"]);
    expect(postmaster.pid).toBeUndefined();
  });

  test("a start that a stop overtakes before the spawn gives up", async () => {
    const { lifecycle, events } = world();
    const start = lifecycle.start();
    await lifecycle.stop("leaseLost");
    expect(await start).toBe(false);
    expect(events).toEqual([]);
  });

  test("nothing is started once the container ends, and the lease goes back after the process", async () => {
    const { lifecycle, clock, events } = world();
    const start = lifecycle.start();
    await begun(events);
    await advance(clock, 50);
    const end = lifecycle.terminate("leaseLost", 1);
    await advance(clock, 300);
    await Promise.all([start, end]);
    expect(await lifecycle.start()).toBe(false);
    expect(events).toEqual(["starting", "started", "stop immediate", "released", "end 1"]);
  });

  test("who steps down gives the lease back, keeps the container, and may start again", async () => {
    const { lifecycle, clock, events } = world();
    lifecycle.adopt(7);
    await finished(clock, lifecycle.stepDown("switchover"));
    expect(events).toEqual(["stop fast", "released"]);
    expect(lifecycle.busy).toBe(false);
    events.length = 0;
    const start = lifecycle.start();
    await begun(events);
    await finished(clock, start);
    expect(await start).toBe(true);
  });

  test("nothing is started before the lease of a step down is back, and the end of the container waits for that", async () => {
    let answer: () => void = () => undefined;
    const givenBack = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const { lifecycle, clock, events } = world({ givenBack });
    lifecycle.adopt(7);
    const down = lifecycle.stepDown("failover");
    await vi.waitFor(() => expect(events).toContain("giving back"));
    expect(lifecycle.busy).toBe(true);
    expect(await lifecycle.start()).toBe(false);
    const again = lifecycle.stepDown("switchover");
    const end = lifecycle.terminate("signal", 0);
    await advance(clock, 100);
    expect(events).toEqual(["stop fast", "giving back"]);
    answer();
    await finished(clock, Promise.all([down, again, end]));
    expect(events).toEqual(["stop fast", "giving back", "released", "end 0"]);
  });

  test("a disk that does not answer holds up neither the stop nor the end of the container", async () => {
    const { lifecycle, clock, events } = world({ role: () => never, logged: never });
    lifecycle.adopt(7);
    const end = lifecycle.terminate("leaseLost", 1);
    await advance(clock, 1_000);
    expect(events).toEqual(["stop immediate", "released"]);
    await advance(clock, 2_000);
    await end;
    expect(events).toEqual(["stop immediate", "released", "end 1"]);
  });

  test("a role that can't be read is taken for a primary's", async () => {
    const { lifecycle, clock, events } = world({ role: () => Promise.reject(new Error("EIO")) });
    lifecycle.adopt(7);
    const stop = lifecycle.stop("failover");
    await advance(clock, 10);
    await stop;
    expect(events).toEqual(["stop fast"]);
  });

  test("a restart after which PostgreSQL is down is an error", async () => {
    const { lifecycle, clock, right } = world({ role: async () => "standby" });
    await finished(clock, lifecycle.start());
    await finished(clock, lifecycle.restart("test"));
    const primary = world();
    primary.lifecycle.adopt(7);
    primary.right.held = false;
    await expect(primary.lifecycle.restart("test")).rejects.toThrow("did not come up");
    expect(primary.state.restarting).toBe(false);
    expect(primary.lifecycle.busy).toBe(false);
    expect(right.held).toBe(true);
  });

  test("an unexpected end is being dealt with until PostgreSQL runs again", async () => {
    const { lifecycle, clock, postmaster, events } = world({ role: async () => "standby" });
    lifecycle.adopt(7);
    postmaster.end();
    expect(lifecycle.busy).toBe(true);
    await advance(clock, 0);
    await advance(clock, 200);
    expect(lifecycle.busy).toBe(false);
    expect(events).toEqual(["starting", "started"]);
  });

  test("an instance whose fence was lifted counts as unavailable on purpose until PostgreSQL is up", async () => {
    const { lifecycle, clock, events, state } = world();
    state.fenced = true;
    lifecycle.unfence();
    expect([mightBeUnavailable(state), reportsUnavailable(state)]).toEqual([false, true]);
    const start = lifecycle.start();
    await begun(events);
    expect(reportsUnavailable(state)).toBe(true);
    await advance(clock, 200);
    await start;
    await vi.waitFor(() => expect(reportsUnavailable(state)).toBe(false));
  });

  const ended = Promise.resolve({ state: "shut down", checkpointLsn: "0/5000028" });
  test.each<[string, "switchover" | "forced" | "isolated", Promise<object>, object, string]>([
    ["a stop in order", "switchover", ended, { synchronous: { number: 1 } }, "released at 0/5000028"],
    [
      "a stop that became an immediate one",
      "switchover",
      Promise.resolve({ state: "in production" }),
      { synchronous: { number: 1 } },
      "released",
    ],
    ["a disk that does not answer", "switchover", never, { synchronous: { number: 1 } }, "released"],
    ["a stop that is in a hurry", "forced", ended, { synchronous: { number: 1 } }, "released"],
    ["a cluster that may lose what nobody else has", "switchover", ended, {}, "released"],
  ])("the end of the WAL is told with the lease: %s", async (_, cause, control, postgresql, expected) => {
    const { clock, lifecycle, events, state } = world({ control });
    if (state.cluster) state.cluster.spec = { ...state.cluster.spec, postgresql } as Cluster["spec"];
    lifecycle.adopt(7);
    await finished(clock, lifecycle.terminate(cause, 0));
    expect(events.filter((it) => it.startsWith("released"))).toEqual([expected]);
  });
});
