import { beforeEach, describe, expect, it } from "vitest";
import { type ManagerDelivery, ManagerUploads } from "../../../src/operator/manager-uploads.ts";
import type { SendOutcome } from "../../../src/operator/send-manager.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { captureLogs } from "../../support/log-capture.ts";

const hash = "b".repeat(64);
let sending: { ip: string; signal: AbortSignal; end(outcome: SendOutcome): void }[];
let woken: string[];
let told: string[];
let uploads: ManagerUploads;
let openFails = false;

beforeEach(() => {
  sending = [];
  woken = [];
  told = [];
  openFails = false;
  uploads = new ManagerUploads({
    open: async (goArch) => {
      if (openFails) throw new Error(`no instance manager for ${goArch}`);
      return { size: 0, read: async function* () {} };
    },
    send: ({ ip, signal }) =>
      new Promise((resolve) => {
        sending.push({ ip, signal, end: resolve });
        signal.addEventListener("abort", () => resolve({ kind: "failed", reason: "aborted" }));
      }),
    enqueue: (cluster) => woken.push(cluster),
    events: { record: (_, { reason, message }) => told.push(`${reason}: ${message}`) },
    clock: createFakeClock(),
    logger: captureLogs().logger,
  });
});

function delivery(serial: number): ManagerDelivery {
  const subject = { apiVersion: "v1", kind: "Cluster", namespace: "ns", name: "c", uid: "u" };
  const instance = { instance: `c-${serial}`, podUid: `u${serial}`, ip: `10.0.0.${serial}`, serverCa: "ca" };
  return { cluster: "ns/c", subject, ...instance, goArch: "amd64", hash, oldHash: "a" };
}

async function end(index: number, outcome: SendOutcome): Promise<void> {
  await expect.poll(() => sending.length).toBeGreaterThan(index);
  sending[index]?.end(outcome);
  await expect.poll(() => woken.length).toBeGreaterThan(index);
}

const state = (serial: number) => uploads.states.get(`u${serial}`);

describe("managers that are sent", () => {
  it("are remembered as under way and then as sent, and the cluster is looked at", async () => {
    uploads.deliver(delivery(1));
    uploads.deliver(delivery(1));
    expect(state(1)).toMatchObject({ kind: "sending", hash, oldHash: "a", attempts: 0 });
    await end(0, { kind: "sent" });
    expect(state(1)).toMatchObject({ kind: "sent", attempts: 0 });
    expect(sending).toHaveLength(1);
    expect(woken).toEqual(["ns/c"]);
    expect(told).toEqual([]);
    uploads.forget("u1");
    expect(state(1)).toBeUndefined();
  });

  it("that are put off are no failure; attempts are counted until one arrives", async () => {
    for (const [index, attempts] of [1, 2].entries()) {
      uploads.deliver(delivery(1));
      await end(index, { kind: "refused", reason: "it answered 503: operator certificate not recognized" });
      expect(state(1)).toMatchObject({ kind: "refused", attempts });
    }
    expect(told).toEqual([]);
    uploads.deliver(delivery(1));
    await end(2, { kind: "sent" });
    expect(state(1)?.attempts).toBe(0);
  });

  it("that are refused for good are told", async () => {
    uploads.deliver(delivery(1));
    await end(0, { kind: "failed", reason: "it answered 500: other hash" });
    expect(state(1)).toMatchObject({ kind: "failed", attempts: 1 });
    expect(told).toEqual([
      "InstanceManagerUpgradeFailed: Error while upgrading instance manager on c-1 (hash: bbbbbb): it answered 500: other hash",
    ]);
  });

  it("that this operator does not have are told too", async () => {
    openFails = true;
    uploads.deliver(delivery(1));
    await expect.poll(() => told).toEqual([expect.stringContaining("no instance manager for amd64")]);
  });

  it("go to two instances at a time", async () => {
    for (let serial = 1; serial <= 5; serial += 1) uploads.deliver(delivery(serial));
    await expect.poll(() => sending.length).toBe(2);
    expect(state(5)?.kind).toBe("sending");
    await end(0, { kind: "sent" });
    await expect.poll(() => sending.map((it) => it.ip)).toEqual(["10.0.0.1", "10.0.0.2", "10.0.0.3"]);
    await uploads.close();
    expect(sending.every((it) => it.signal.aborted)).toBe(true);
    expect(sending).toHaveLength(3);
  });
});
