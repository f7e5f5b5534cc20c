import { afterEach, expect, test, vi } from "vitest";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import { parseVolumeFailure } from "../../../src/api/volume-failure.ts";
import { createInstanceState } from "../../../src/instance/instance-state.ts";
import { Reconciler, type ReconcilerOptions } from "../../../src/instance/reconcile/reconciler.ts";
import { ProbeChecks } from "../../../src/instance/web/probe-checks.ts";
import { type RemoteServerDeps, remoteHandler } from "../../../src/instance/web/remote-server.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { captureLogs } from "../../support/log-capture.ts";

const stop = new AbortController();
afterEach(() => stop.abort());

/** Every property is a function that notes its call and never comes back, as a disk that hangs. */
function hanging<T>(touched: string[], name: string): T {
  const call = (what: string) => () => {
    touched.push(`${name}.${what}`);
    return new Promise(() => undefined);
  };
  return new Proxy({}, { get: (_, what) => call(String(what)) }) as T;
}

function world() {
  const touched: string[] = [];
  const clock = createFakeClock();
  const state = createInstanceState();
  state.cluster = {
    metadata: { name: "c", namespace: "ns" },
    spec: { instances: 3 },
    status: {},
  } as unknown as Cluster;
  state.silentVolumes = { folders: ["/data"], sinceMs: clock.monotonicMs() };
  const context = {
    clock,
    state,
    logger: captureLogs().logger,
    settings: { podName: "c-1", namespace: "ns", clusterName: "c" },
    paths: {},
    localSessions: new Set(),
    files: hanging(touched, "files"),
    data: hanging(touched, "data"),
    processes: hanging(touched, "processes"),
    sql: hanging(touched, "sql"),
    kube: hanging(touched, "kube"),
  };
  return { touched, clock, state, context };
}

test("a pass touches nothing while volumes take no writes, and goes on once they do", async () => {
  const { touched, state, context } = world();
  const reconciler = new Reconciler({
    context,
    postmaster: { pid: undefined },
    lifecycle: { terminating: false },
    secrets: { observe: () => touched.push("secrets") },
    manager: { goArch: "amd64", hash: "h" },
  } as unknown as ReconcilerOptions);
  void reconciler.run(stop.signal);
  for (let pass = 0; pass < 3; pass += 1) {
    reconciler.wake();
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(touched).toEqual([]);
  state.silentVolumes = undefined;
  reconciler.wake();
  await vi.waitFor(() => expect(touched).not.toEqual([]));
});

test("status and liveness are answered without the disk meanwhile", async () => {
  const { touched, clock, context } = world();
  const probes = new ProbeChecks(
    context as never,
    { pid: undefined } as never,
    hanging(touched, "sql"),
    () => undefined,
  );
  const status = hanging(touched, "status");
  const handle = remoteHandler({ context, status, probes } as unknown as RemoteServerDeps);
  const get = (path: string) =>
    handle({ method: "GET" } as never, new URL(path, "http://localhost"), { proceed: () => undefined });
  await clock.advance(7_000);
  const answer = await get("/pg/status");
  expect(answer?.status).toBe(503);
  expect(parseVolumeFailure(answer?.body ?? "")).toMatchObject({ folders: ["/data"], silentMs: 7_000 });
  expect(await get("/healthz")).toEqual({ status: 200, body: "OK" });
  expect(touched).toEqual([]);
});
