import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type ControlPlane, startControlPlane } from "../../../local/control-plane/control-plane.ts";
import { createKubeApi } from "../../../src/kube/create-kube-api.ts";
import { createEventSink } from "../../../src/kube/event-sink.ts";
import type { KubeClient } from "../../../src/kube/kube-client.ts";
import { loadKubeconfigConnection } from "../../../src/kube/kubeconfig.ts";
import { createLeaderElector, LeadershipLostError } from "../../../src/kube/leader-elector.ts";
import { resources } from "../../../src/kube/resources.ts";
import { StopReason } from "../../../src/runtime/runnable.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { captureLogs } from "../../support/log-capture.ts";
import { type FaultyProxy, startFaultyProxy } from "./faulty-proxy.ts";

let controlPlane: ControlPlane;
let proxy: FaultyProxy;
let direct: KubeClient;
let api: KubeClient;

beforeAll(async () => {
  controlPlane = await startControlPlane();
  proxy = await startFaultyProxy(controlPlane);
  direct = createKubeApi(loadKubeconfigConnection(controlPlane.kubeconfig));
  api = createKubeApi(proxy.connection, { requestTimeoutMs: 2_000 });
});
afterEach(() => {
  proxy.misbehave(undefined);
});
afterAll(async () => {
  await Promise.all([direct?.close(), api?.close()]);
  await proxy?.stop();
  await controlPlane?.stop();
});

function aCandidate(client: KubeClient, name: string, identity: string, story: string[]) {
  const stop = new AbortController();
  const elector = createLeaderElector({
    api: client,
    namespace: "default",
    name,
    identity,
    clock: systemClock,
    logger: captureLogs().logger,
    leaseDurationMs: 3_000,
    renewDeadlineMs: 2_000,
    retryPeriodMs: 400,
    onStarted: () => story.push(`${identity} started`),
    onStopped: () => story.push(`${identity} stopped`),
  });
  const running = elector.run(stop.signal);
  running.catch(() => undefined);
  return { elector, stop, running };
}

async function waitUntil(condition: () => boolean, timeoutMs: number): Promise<number> {
  const began = performance.now();
  while (!condition()) {
    if (performance.now() - began > timeoutMs) throw new Error(`did not happen within ${timeoutMs} ms`);
    await systemClock.sleep(10);
  }
  return performance.now() - began;
}

describe("leader election", () => {
  it("hands over within a retry period when the leader stops", async () => {
    const story: string[] = [];
    const first = aCandidate(direct, "handover", "first", story);
    await waitUntil(() => first.elector.isLeader(), 5_000);
    const second = aCandidate(direct, "handover", "second", story);
    await systemClock.sleep(4_000);
    expect(second.elector.isLeader()).toBe(false);
    first.stop.abort(new StopReason());
    await first.running;
    expect(await waitUntil(() => second.elector.isLeader(), 5_000)).toBeLessThan(1_500);
    expect(story).toEqual(["first started", "first stopped", "second started"]);
    const lease = await direct.get(resources.leases, { namespace: "default", name: "handover" });
    expect(lease.spec).toMatchObject({ holderIdentity: "second", leaseDurationSeconds: 3, leaseTransitions: 1 });
    second.stop.abort(new StopReason());
    await second.running;
  }, 30_000);

  it("lets a leader that is cut off stop before its successor begins", async () => {
    const story: string[] = [];
    const cutOff = aCandidate(api, "isolated", "cut-off", story);
    await waitUntil(() => cutOff.elector.isLeader(), 5_000);
    const successor = aCandidate(direct, "isolated", "successor", story);
    proxy.misbehave(() => ({ kind: "hang" }));
    await expect(cutOff.running).rejects.toBeInstanceOf(LeadershipLostError);
    expect(successor.elector.isLeader()).toBe(false);
    await waitUntil(() => successor.elector.isLeader(), 10_000);
    expect(story).toEqual(["cut-off started", "cut-off stopped", "successor started"]);
    successor.stop.abort(new StopReason());
    await successor.running;
  }, 30_000);

  it("leads on although many answers are lost or refused", async () => {
    const story: string[] = [];
    let requests = 0;
    proxy.misbehave((request) => {
      if (requests++ % 3 !== 2) return undefined;
      return request.method === "GET" ? { kind: "answer", status: 500 } : { kind: "loseAnswer" };
    });
    const leader = aCandidate(api, "noisy", "steady", story);
    await waitUntil(() => leader.elector.isLeader(), 10_000);
    requests = 0;
    // Every fourth request fails from here on.
    proxy.misbehave((request) => {
      if (requests++ % 4 !== 3) return undefined;
      return request.method === "GET" ? { kind: "answer", status: 429 } : { kind: "loseAnswer" };
    });
    await systemClock.sleep(6_000);
    expect(leader.elector.isLeader()).toBe(true);
    expect(story).toEqual(["steady started"]);
    proxy.misbehave(undefined);
    leader.stop.abort(new StopReason());
    await leader.running;
  }, 30_000);

  it("makes one leader of many candidates that start together", async () => {
    const story: string[] = [];
    const candidates = Array.from({ length: 5 }, (_, index) =>
      aCandidate(direct, "crowd", `candidate-${index}`, story),
    );
    await systemClock.sleep(2_000);
    expect(candidates.filter(({ elector }) => elector.isLeader())).toHaveLength(1);
    expect(story).toHaveLength(1);
    for (const { stop } of candidates) stop.abort(new StopReason());
    await Promise.all(candidates.map(({ running }) => running));
  }, 30_000);
});

describe("events", () => {
  it("are accepted by the server, counted when repeated, and outlast its absence", async () => {
    const sink = createEventSink(api, {
      component: "cloudnative-pg",
      clock: systemClock,
      logger: captureLogs().logger,
    });
    const target = {
      apiVersion: "postgresql.cnpg.io/v1",
      kind: "Cluster",
      namespace: "default",
      name: "demo",
      uid: "u-1",
    };
    const repeated = { type: "Normal", reason: "CreatingInstance", message: "Creating instance demo-2" } as const;
    for (let i = 0; i < 5; i++) {
      sink.record(target, repeated);
      await sink.flush();
    }
    let lost = 0;
    proxy.misbehave(() =>
      lost++ === 0 ? { kind: "loseAnswer" } : lost < 4 ? { kind: "answer", status: 503 } : undefined,
    );
    sink.record(target, { type: "Warning", reason: "NoScaleDown", message: "after the storm" });
    await sink.flush();
    sink.record({ ...target, kind: "Node", namespace: "", name: "node-1", uid: "u-2" }, repeated);
    await sink.flush();
    const events = await direct.list(resources.events, {
      namespace: "default",
      fieldSelector: "reason!=RegisteredNode",
    });
    const brief = events.map((event) => [
      event.involvedObject.name,
      event.type,
      event.message,
      event.count,
      event.source?.component,
    ]);
    expect(brief.filter((line) => line[4] === "cloudnative-pg").sort()).toEqual([
      ["demo", "Normal", "Creating instance demo-2", 5, "cloudnative-pg"],
      ["demo", "Warning", "after the storm", 1, "cloudnative-pg"],
      ["node-1", "Normal", "Creating instance demo-2", 1, "cloudnative-pg"],
    ]);
  });
});
