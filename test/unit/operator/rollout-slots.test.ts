import { describe, expect, it } from "vitest";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import type { Pod } from "../../../src/api/generated/kubernetes.ts";
import { annotations } from "../../../src/api/labels.ts";
import { formatRolloutNote } from "../../../src/api/rollout-note.ts";
import { RolloutSlots } from "../../../src/operator/rollout-slots.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { aCluster } from "../plan/cluster/fixtures.ts";

const clock = createFakeClock();
const at = (ms: number) => clock.now() - ms;

function slots(
  clusters: Record<string, { podUid: string; atMs: number } | string>,
  pods: Record<string, Partial<Pod["metadata"]>> = {},
) {
  const list = (): Cluster[] =>
    Object.entries(clusters).map(([name, note]) => {
      const text = typeof note === "string" ? note : formatRolloutNote({ instance: `${name}-1`, ...note });
      return aCluster({}, {}, { name, annotations: { [annotations.lastRollout]: text } });
    });
  const get = ({ name }: { name: string }): Pod | undefined =>
    pods[name] && { apiVersion: "v1", kind: "Pod", metadata: { name, ...pods[name] } };
  return new RolloutSlots({ clusters: { list }, pods: { get }, clock });
}

describe("the rollout slot", () => {
  it("is read off the clusters by an operator that has just started", () => {
    const read = slots({ a: { podUid: "", atMs: at(9_000) }, b: { podUid: "u", atMs: at(5_000) } });
    expect(read.latest()).toEqual({ cluster: "ns/b", instance: "b-1", podUid: "u", atMs: at(5_000) });
  });

  it.each<[string, Partial<Pod["metadata"]> | undefined, boolean]>([
    ["is gone", undefined, true],
    ["was replaced", { uid: "other" }, true],
    ["is on its way out", { uid: "u", deletionTimestamp: "2026-01-01T00:00:00Z" }, true],
    ["is there as before", { uid: "u" }, false],
  ])("counts a step whose pod %s", (_, pod, counts) => {
    const read = slots({ a: { podUid: "u", atMs: at(5_000) } }, pod ? { "a-1": pod } : {});
    expect(read.latest() !== undefined).toBe(counts);
  });

  it.each(["{", "[]", '{"instance":"a-1","podUid":"u","at":"never"}', '{"instance":1}'])(
    "passes over the note %s",
    (text) => {
      expect(slots({ a: text }).latest()).toBeUndefined();
    },
  );

  it("is taken by one of two that saw it free", () => {
    const shared = slots({}, { "a-1": { uid: "u" } });
    const first = { cluster: "ns/a", instance: "a-1", podUid: "u", atMs: clock.now() };
    shared.take(first, undefined);
    const second = { cluster: "ns/b", instance: "b-1", podUid: "v", atMs: clock.now() };
    expect(() => shared.take(second, undefined)).toThrow(/a-1 went first/);
    shared.giveBack(first);
    shared.take(second, undefined);
    expect(shared.latest()).toBe(second);
  });
});
