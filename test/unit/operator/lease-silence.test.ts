import { expect, test } from "vitest";
import type { Lease } from "../../../src/api/generated/kubernetes.ts";
import { annotations } from "../../../src/api/labels.ts";
import { LeaseSilence } from "../../../src/operator/lease-silence.ts";
import type { Store, StoreEvent } from "../../../src/ports/kube-api.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

function aLease(renewTime: string, holderIdentity = "c-1", owned = true): Lease {
  const owner = { apiVersion: "postgresql.cnpg.io/v1", kind: "Cluster", name: "c", uid: "u", controller: true };
  return {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { name: "c", namespace: "ns", uid: "l", ...(owned ? { ownerReferences: [owner] } : {}) },
    spec: { holderIdentity, renewTime, leaseTransitions: 1 },
  };
}

async function world(first: Lease) {
  const clock = createFakeClock();
  let lease = first;
  const listeners = new Set<(event: StoreEvent<Lease>) => void>();
  const leases = {
    list: () => [lease],
    subscribe: (listener: (event: StoreEvent<Lease>) => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  } as unknown as Store<Lease>;
  const passes: { key: string; at: number }[] = [];
  const silence = new LeaseSilence({
    leases,
    clock,
    enqueue: (key) => passes.push({ key, at: clock.monotonicMs() }),
  });
  const stop = new AbortController();
  const running = silence.run(stop.signal);
  const write = (next: Lease) => {
    lease = next;
    for (const listener of listeners) listener({ type: "updated", object: next } as StoreEvent<Lease>);
  };
  const end = async () => {
    stop.abort();
    await running;
    expect(listeners.size).toBe(0);
  };
  await clock.advance(0);
  return { clock, silence, passes, write, end };
}

test("asks for a pass five seconds after the last renewal, and again while it stays silent", async () => {
  const { clock, silence, passes, write, end } = await world(aLease("1"));
  await clock.advance(4_000);
  write(aLease("2"));
  await clock.advance(4_900);
  expect(passes).toEqual([]);
  expect(silence.isSilent(aLease("2"))).toBe(false);
  await clock.advance(600);
  expect(passes).toEqual([{ key: "ns/c", at: 9_000 }]);
  expect(silence.isSilent(aLease("2"))).toBe(true);
  await clock.advance(5_000);
  expect(passes).toHaveLength(2);
  write(aLease("3"));
  await clock.advance(4_000);
  expect(passes).toHaveLength(2);
  await end();
});

test.each([
  ["nobody holds", aLease("1", "")],
  ["is no cluster's", aLease("1", "c-1", false)],
])("a lease that %s is silent for good and disturbs nobody", async (_, lease) => {
  const { clock, passes, end } = await world(lease);
  await clock.advance(30_000);
  expect(passes).toEqual([]);
  await end();
});

test("asks for one pass five seconds after a lease was given back, unless it is taken again", async () => {
  const givenBack = (renewTime: string): Lease => {
    const { metadata, ...rest } = aLease(renewTime, "");
    const voters = JSON.stringify({ voters: ["c-1", "c-2"], holderUID: "u", releasedBy: "c-1" });
    return { ...rest, metadata: { ...metadata, annotations: { [annotations.leaseVoters]: voters } } };
  };
  const { clock, silence, passes, write, end } = await world(aLease("1"));
  await clock.advance(4_000);
  write(givenBack("2"));
  await clock.advance(4_000);
  write(aLease("3"));
  await clock.advance(4_000);
  write(givenBack("4"));
  await clock.advance(4_900);
  expect(passes).toEqual([]);
  expect(silence.isSilent(givenBack("4"))).toBe(false);
  await clock.advance(600);
  expect(passes).toEqual([{ key: "ns/c", at: 17_000 }]);
  // What the store shows may be old: who looks reads it live.
  expect(silence.isSilent(givenBack("4"))).toBe(true);
  await clock.advance(60_000);
  expect(passes).toHaveLength(1);
  await end();
});

test("a live read that shows another record starts the time anew", async () => {
  const { clock, silence, end } = await world(aLease("1"));
  await clock.advance(6_000);
  expect(silence.unchangedMs(aLease("2"))).toBe(0);
  await end();
});
