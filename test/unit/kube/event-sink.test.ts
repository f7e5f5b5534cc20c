import { describe, expect, it } from "vitest";
import { createEventSink } from "../../../src/kube/event-sink.ts";
import { resources } from "../../../src/kube/resources.ts";
import type { EventTarget } from "../../../src/ports/event-sink.ts";
import { KubeError } from "../../../src/ports/kube-api.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { createFakeKubeApi, fault } from "../../support/fake-kube-api.ts";
import { captureLogs } from "../../support/log-capture.ts";
import { createSeededRandom } from "../../support/seeded-random.ts";

const target: EventTarget = {
  apiVersion: "postgresql.cnpg.io/v1",
  kind: "Cluster",
  namespace: "ns",
  name: "demo",
  uid: "u1",
};
const event = { type: "Normal", reason: "CreatingInstance", message: "Creating instance demo-2" } as const;

function aSink() {
  const clock = createFakeClock();
  const api = createFakeKubeApi({ clock });
  const logs = captureLogs();
  const sink = createEventSink(api, {
    component: "cloudnative-pg",
    clock,
    random: createSeededRandom(),
    logger: logs.logger,
  });
  return { clock, api, logs, sink, events: () => api.peekAll(resources.events) };
}

describe("event sink", () => {
  it("writes an event as the original's recorder does", async () => {
    const { sink, events } = aSink();
    sink.record(target, event);
    await sink.flush();
    expect(events()).toHaveLength(1);
    expect(events()[0]).toMatchObject({
      metadata: { namespace: "ns" },
      involvedObject: { kind: "Cluster", name: "demo", uid: "u1" },
      ...event,
      count: 1,
      firstTimestamp: "2026-01-01T00:00:00Z",
      lastTimestamp: "2026-01-01T00:00:00Z",
      source: { component: "cloudnative-pg" },
    });
    expect(events()[0]?.metadata.name).toMatch(/^demo\.[0-9a-f]+$/);
  });

  it("raises the count of a repeat instead of writing another one", async () => {
    const { clock, api, sink, events } = aSink();
    sink.record(target, event);
    await sink.flush();
    await clock.advance(60_000);
    for (let i = 0; i < 3; i++) sink.record(target, event);
    await sink.flush();
    expect(events()).toHaveLength(1);
    expect(events()[0]).toMatchObject({
      count: 4,
      firstTimestamp: "2026-01-01T00:00:00Z",
      lastTimestamp: "2026-01-01T00:01:00Z",
    });
    // The first of the three starts a write at once, the others share one.
    expect(api.requests.length).toBeLessThanOrEqual(3);
  });

  it("starts another event after ten quiet minutes, and for another message or object", async () => {
    const { clock, sink, events } = aSink();
    sink.record(target, event);
    await clock.advance(11 * 60_000);
    sink.record(target, event);
    sink.record(target, { ...event, message: "Creating instance demo-3" });
    sink.record({ ...target, uid: "u2" }, event);
    await sink.flush();
    expect(events()).toHaveLength(4);
  });

  it("thins a flood about one object without silencing others", async () => {
    const { clock, sink, events } = aSink();
    for (let i = 0; i < 200; i++) sink.record(target, { ...event, message: `message ${i}` });
    sink.record({ ...target, name: "quiet", uid: "u2" }, event);
    await sink.flush();
    expect(events().filter((item) => item.involvedObject.name === "demo")).toHaveLength(25);
    expect(events().filter((item) => item.involvedObject.name === "quiet")).toHaveLength(1);
    await clock.advance(5 * 60_000);
    sink.record(target, { ...event, message: "later" });
    await sink.flush();
    expect(events().filter((item) => item.involvedObject.name === "demo")).toHaveLength(26);
  });

  it("outlasts a server that is away for a while, and counts what repeats meanwhile", async () => {
    const { clock, api, sink, events } = aSink();
    api.intercept(() => fault("unavailable"));
    sink.record(target, { ...event, message: "first" });
    sink.record(target, event);
    sink.record(target, event);
    await clock.advance(3_000);
    api.intercept(undefined);
    await clock.advance(20_000);
    expect(events().map((item) => [item.message, item.count])).toEqual([
      ["first", 1],
      [event.message, 2],
    ]);
  });

  it("does not write twice when only the answer was lost", async () => {
    const { clock, api, sink, events } = aSink();
    let calls = 0;
    api.intercept(() => (calls++ === 0 ? fault("unavailable", { after: true }) : undefined));
    sink.record(target, event);
    await clock.advance(5_000);
    expect(events()).toHaveLength(1);
    expect(events()[0]?.count).toBe(1);
  });

  it("writes anew when the server has forgotten the event", async () => {
    const { api, sink, events } = aSink();
    sink.record(target, event);
    await sink.flush();
    const [first] = events();
    api.finishDeletion(resources.events, { namespace: "ns", name: first?.metadata.name ?? "" });
    sink.record(target, event);
    await sink.flush();
    expect(events()).toHaveLength(1);
    expect(events()[0]?.metadata.name).not.toBe(first?.metadata.name);
    expect(events()[0]?.count).toBe(1);
  });

  it("gives up with a log line on what cannot work, and after its attempts", async () => {
    const { clock, api, logs, sink, events } = aSink();
    api.intercept(() => fault("forbidden"));
    sink.record(target, event);
    await sink.flush();
    api.intercept(() => fault("unavailable"));
    sink.record(target, { ...event, message: "other" });
    await clock.advance(120_000);
    expect(logs.messages("warning")).toEqual(["Event could not be written", "Event could not be written"]);
    expect(events()).toEqual([]);
  });

  it("gives up without a word where the namespace is being deleted", async () => {
    const { api, logs, sink, events } = aSink();
    const error = new KubeError("no", { kind: "forbidden", status: 403, namespaceTerminating: true });
    api.intercept(() => ({ error }));
    sink.record(target, event);
    await sink.flush();
    expect(logs.records).toEqual([]);
    expect(events()).toEqual([]);
  });

  it("puts events about cluster-scoped objects into the default namespace and shortens long messages", async () => {
    const { sink, events } = aSink();
    sink.record({ ...target, kind: "Node", namespace: "" }, { ...event, message: "x".repeat(5000) });
    await sink.flush();
    expect(events()[0]?.metadata.namespace).toBe("default");
    expect(events()[0]?.message).toHaveLength(1024);
  });
});
