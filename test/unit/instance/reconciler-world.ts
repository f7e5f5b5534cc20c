import { afterEach, expect, vi } from "vitest";
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

/** A reconciler whose every peer is a list of what was asked of it. */
export function reconcilerWorld(options: {
  role: "primary" | "standby";
  current?: string;
  target?: string;
  fenced?: boolean;
}) {
  const clock = createFakeClock();
  const logs = captureLogs();
  const state = createInstanceState();
  const events: string[] = [];
  const set = (change: {
    current?: string;
    target?: string;
    fenced?: boolean;
    judged?: boolean;
    replica?: boolean;
  }) => {
    const status = { ...state.cluster?.status };
    // The operator sends this very manager, and so the rules are shared: without its defaults the definition is held back.
    if (change.judged !== undefined)
      status.availableArchitectures = [{ goArch: "amd64", hash: change.judged ? "mine" : "another" }];
    if (change.current !== undefined) status.currentPrimary = change.current;
    if (change.target !== undefined) status.targetPrimary = change.target;
    const fencing: Record<string, string> = change.fenced ? { [annotations.fencedInstances]: '["c-1"]' } : {};
    state.cluster = {
      metadata: { name: "c", namespace: "ns", annotations: fencing },
      spec: {
        instances: 3,
        imageName: "image:17",
        ...(change.replica === undefined ? {} : { replica: { source: "s", enabled: change.replica } }),
      },
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
    async stepDown(cause: string) {
      postmaster.pid = undefined;
      events.push(`stepDown ${cause}`);
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
    manager: { goArch: "amd64", hash: "mine" },
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
    files: () => new Map(written),
    set(change: Parameters<typeof set>[0]) {
      set(change);
      reconciler.wake();
    },
    /** PostgreSQL runs already, with the right to. */
    adopt() {
      facts.held = true;
      postmaster.pid = 7;
      reconciler.adopted();
    },
    run: () => void reconciler.run(stop.signal),
    /** Waits, in real time, until that was done. */
    until: (event: string) => vi.waitFor(() => expect(events).toContain(event), { timeout: 4_000, interval: 5 }),
  };
}
