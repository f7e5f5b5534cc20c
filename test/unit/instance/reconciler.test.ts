import { afterEach, describe, expect, test, vi } from "vitest";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import { annotations } from "../../../src/api/labels.ts";
import type { InstanceContext } from "../../../src/instance/instance-context.ts";
import { instancePaths } from "../../../src/instance/instance-paths.ts";
import { createInstanceState } from "../../../src/instance/instance-state.ts";
import type { LeaseHolder } from "../../../src/instance/lease/candidacy.ts";
import { Reconciler, type ReconcilerOptions } from "../../../src/instance/reconcile/reconciler.ts";
import { SecretReader } from "../../../src/instance/secret-reader.ts";
import type { InstanceSettings } from "../../../src/instance/settings.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { createFakeKubeApi } from "../../support/fake-kube-api.ts";
import { captureLogs } from "../../support/log-capture.ts";

const stops: AbortController[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop.abort();
});

function diskFull(): Error {
  return Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
}

/** A reconciler whose every peer is a list of what was asked of it. */
function world(options: { role: "primary" | "standby"; current?: string; target?: string; fenced?: boolean }) {
  const clock = createFakeClock();
  const logs = captureLogs();
  const state = createInstanceState();
  const events: string[] = [];
  const set = (change: { current?: string; target?: string; fenced?: boolean }) => {
    const status = { ...state.cluster?.status };
    if (change.current !== undefined) status.currentPrimary = change.current;
    if (change.target !== undefined) status.targetPrimary = change.target;
    const fencing: Record<string, string> = change.fenced ? { [annotations.fencedInstances]: '["c-1"]' } : {};
    state.cluster = {
      metadata: { name: "c", namespace: "ns", annotations: fencing },
      spec: { instances: 3, imageName: "image:17" },
      status,
    } as unknown as Cluster;
  };
  set({ current: options.current ?? "c-2", target: options.target ?? "c-2", fenced: options.fenced ?? false });
  const facts = {
    role: options.role,
    holder: "other" as LeaseHolder,
    silence: null as string | null,
    held: false,
    accepting: true,
    fileError: undefined as Error | undefined,
    startFails: false,
    control: undefined as { hotStandby: Record<string, number> } | undefined,
    query: async (_text: string): Promise<Record<string, unknown>[]> => [],
  };
  const settings = {
    podName: "c-1",
    pgData: "/pgdata",
    scratch: "/run",
    walVolume: "/wal",
    postgresPort: 5432,
    environment: {},
  };
  const paths = instancePaths(settings as unknown as InstanceSettings);
  const written = new Map<string, string>([
    ["/run/certificates/server.crt", "c"],
    ["/run/certificates/server.key", "k"],
  ]);
  written.set("/run/certificates/client-ca.crt", "a");
  const files = {
    exists: async (path: string) => written.has(path),
    read: async (path: string) => written.get(path),
    writeAtomic: async (path: string, text: string) => {
      if (facts.fileError) throw facts.fileError;
      const changed = written.get(path) !== text;
      written.set(path, text);
      return changed;
    },
    remove: async (path: string) => void written.delete(path),
    makeDirectory: async () => undefined,
    list: async () => [],
    chmod: async () => undefined,
    readLink: async () => undefined,
  };
  const postmaster = {
    pid: undefined as number | undefined,
    isAccepting: async () => facts.accepting,
    reload: () => undefined,
  };
  const lifecycle = {
    terminating: false,
    busy: false,
    async start() {
      events.push(`start ${facts.role}`);
      if (facts.startFails) throw new Error("spawn failed");
      postmaster.pid = 7;
      return true;
    },
    async fence() {
      state.fenced = true;
      postmaster.pid = undefined;
      events.push("fence");
    },
    unfence() {
      state.fenced = false;
      events.push("unfence");
    },
    async terminate(cause: string, code: number) {
      lifecycle.terminating = true;
      events.push(`terminate ${cause} ${code}`);
    },
  };
  const lease = {
    get held() {
      return facts.held;
    },
    timings: { retryPeriodMs: 10 },
    async acquire() {
      events.push("acquire");
      return facts.held ? { kind: "held" } : { kind: "refused", reason: "test" };
    },
    readHolder: async () => facts.holder,
    standDown: async () => {
      if (facts.held) events.push("standDown");
      facts.held = false;
    },
  };
  const context = {
    settings,
    paths,
    state,
    files,
    clock,
    logger: logs.logger,
    localSessions: new Set(),
    random: { bytes: (length: number) => new Uint8Array(length), float: () => 0 },
    systemUser: "postgres",
    data: {
      get knownRole() {
        return facts.role;
      },
      role: async () => facts.role,
      major: async () => 17,
      tryControl: async () => facts.control,
    },
    sql: {
      connect: async () => ({ query: (text: string) => facts.query(text), close: async () => undefined }),
    },
  } as unknown as InstanceContext;
  const kube = createFakeKubeApi({ clock });
  const reconciler = new Reconciler({
    context,
    postmaster,
    lifecycle,
    lease,
    secrets: new SecretReader(kube, clock, "ns"),
    status: { claimPrimary: async () => void events.push("claim") },
    volumes: {
      stake: async (what: string, isAtStake: boolean) => void events.push(`${isAtStake ? "probe" : "leave"} ${what}`),
      silence: async () => facts.silence,
    },
  } as unknown as ReconcilerOptions);
  const stop = new AbortController();
  stops.push(stop);
  return {
    events,
    facts,
    postmaster,
    lifecycle,
    reconciler,
    logs,
    customConf: () => written.get(paths.customConf) ?? "",
    set(change: Parameters<typeof set>[0]) {
      set(change);
      reconciler.wake();
    },
    run: () => void reconciler.run(stop.signal),
    /** Waits, in real time, until that was done. */
    until: (event: string) => vi.waitFor(() => expect(events).toContain(event), { timeout: 4_000, interval: 5 }),
  };
}

describe("Reconciler", () => {
  test("the lease is left to others while a volume takes no writes, and taken under the eyes of the launcher after that", async () => {
    const { run, until, facts, events, logs, reconciler } = world({ role: "primary", current: "c-1", target: "c-1" });
    facts.held = true;
    facts.silence = "no write to /pgdata came back within 5 s";
    run();
    await until("leave claim");
    expect(events).toEqual(["probe claim", "leave claim"]);
    const waits = logs.records.filter(({ message }) => message === "Waiting").map(({ fields }) => fields["reason"]);
    expect(waits).toEqual(["the primary lease is left to others: no write to /pgdata came back within 5 s"]);
    facts.silence = null;
    events.length = 0;
    reconciler.wake();
    await until("start primary");
    expect(events.slice(0, 4)).toEqual(["probe claim", "acquire", "leave claim", "start primary"]);
  });

  test("lifting a fence starts nothing that is out of date by now", async () => {
    const { set, run, until, events, facts, postmaster, reconciler } = world({
      role: "primary",
      current: "c-1",
      target: "c-1",
    });
    facts.held = true;
    postmaster.pid = 7;
    reconciler.adopted();
    set({ fenced: true });
    run();
    await until("fence");
    // Meanwhile another instance was promoted.
    set({ fenced: true, current: "c-2", target: "c-2" });
    await until("standDown");
    set({ current: "c-2", target: "c-2" });
    await until("unfence");
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(events.filter((event) => event.startsWith("start "))).toEqual([]);
  });

  test("lifting a fence starts a standby, and again when the first start failed", async () => {
    const { set, run, until, facts, events } = world({ role: "standby", fenced: true });
    facts.startFails = true;
    run();
    await new Promise((resolve) => setTimeout(resolve, 30));
    set({ fenced: false });
    await until("start standby");
    facts.startFails = false;
    set({ fenced: false });
    await vi.waitFor(() => expect(events).toEqual(["unfence", "start standby", "start standby"]));
  });

  test("settings that a standby needs for its start stay in the files until it is up", async () => {
    const { run, until, facts, reconciler, customConf } = world({ role: "standby" });
    facts.control = { hotStandby: { max_connections: 500 } };
    facts.accepting = false;
    run();
    await until("start standby");
    for (let pass = 0; pass < 3; pass += 1) {
      reconciler.wake();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(customConf()).toContain("max_connections = '500'");
    facts.accepting = true;
    reconciler.wake();
    await vi.waitFor(() => expect(customConf()).not.toContain("max_connections = '500'"));
  });

  test("PostgreSQL that is down and that nobody starts is prepared and started anew", async () => {
    const { run, until, reconciler, lifecycle, events } = world({ role: "standby" });
    reconciler.adopted();
    lifecycle.busy = true;
    run();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(events).toEqual([]);
    lifecycle.busy = false;
    reconciler.wake();
    await until("start standby");
  });

  test("an old primary is stopped while its pass hangs in a statement", async () => {
    const { set, run, until, facts, postmaster, reconciler } = world({
      role: "primary",
      current: "c-1",
      target: "c-1",
    });
    facts.held = true;
    postmaster.pid = 7;
    reconciler.adopted();
    const asked = new Promise<void>((resolve) => {
      facts.query = () => {
        resolve();
        return new Promise(() => undefined);
      };
    });
    run();
    await asked;
    set({ target: "c-2" });
    await until("terminate switchover 0");
  });

  test("the lease is kept while a promotion that was asked for is under way, and the server stops when it is not wanted", async () => {
    const { set, run, until, events, facts, postmaster, reconciler } = world({ role: "standby", target: "c-1" });
    facts.held = true;
    postmaster.pid = 7;
    reconciler.adopted();
    const asked = new Promise<void>((resolve) => {
      facts.query = async (text) => {
        if (text.includes("pg_promote")) resolve();
        return text.includes("recovery") ? [{ recovering: true }] : [];
      };
    });
    run();
    await asked;
    set({ target: "c-2" });
    await until("terminate failover 0");
    expect(events).not.toContain("standDown");
    expect(facts.held).toBe(true);
  });

  test("an instance that is not to be primary gives the lease back", async () => {
    const { run, until, facts, reconciler, postmaster } = world({ role: "standby" });
    facts.held = true;
    postmaster.pid = 7;
    reconciler.adopted();
    run();
    await until("standDown");
  });

  test("a full disk before the first start ends the container with the code for it", async () => {
    const { run, until, facts } = world({ role: "standby" });
    facts.fileError = diskFull();
    run();
    await until("terminate error 4");
  });

  test("a full disk keeps a running standby neither from its fence nor from its promotion", async () => {
    const { set, run, until, facts, reconciler, postmaster } = world({ role: "standby", target: "c-1" });
    facts.fileError = diskFull();
    facts.held = true;
    postmaster.pid = 7;
    reconciler.adopted();
    facts.query = async (text) => {
      if (text.includes("pg_promote")) [facts.role, facts.holder] = ["primary", "me"];
      return text.includes("recovery") ? [{ recovering: false }] : [];
    };
    run();
    await until("claim");
    set({ fenced: true });
    await until("fence");
  });
});
