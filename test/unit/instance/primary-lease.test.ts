import { describe, expect, test } from "vitest";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import type { Lease } from "../../../src/api/generated/kubernetes.ts";
import { createInstanceState } from "../../../src/instance/instance-state.ts";
import { PrimaryLease } from "../../../src/instance/primary-lease.ts";
import { resources } from "../../../src/kube/resources.ts";
import type { WriteRight } from "../../../src/plan/instance/right-to-write.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { createFakeKubeApi, fault } from "../../support/fake-kube-api.ts";
import { captureLogs } from "../../support/log-capture.ts";

const key = { namespace: "ns", name: "c" };

function world(currentPrimary = "") {
  const clock = createFakeClock();
  const kube = createFakeKubeApi({ clock });
  kube.seed(resources.leases, {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: key,
    spec: {},
  } satisfies Lease);
  const cluster = {
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Cluster",
    metadata: { ...key },
    spec: { instances: 3 },
    status: { currentPrimary, instanceNames: ["c-1", "c-2"], instancesStatus: { healthy: ["c-1", "c-2"] } },
  } as unknown as Cluster;
  kube.seed(resources.clusters, cluster);
  const candidate = (
    podName: string,
    podUid = `uid-${podName}`,
    api = kube,
    onEngaged: (isEngaged: boolean) => Promise<void> = async () => undefined,
    onRight: (right: WriteRight | undefined) => Promise<void> = async () => undefined,
  ) => {
    const state = createInstanceState();
    state.cluster = cluster;
    const stop = new AbortController();
    let newer: Cluster | undefined;
    const lease = new PrimaryLease({
      kube: api,
      clock,
      logger: captureLogs().logger,
      state,
      podName,
      podUid,
      namespace: "ns",
      clusterName: "c",
      onEngaged,
      onRight,
      onCluster: (read) => {
        newer = read;
      },
    });
    let lost: string | undefined;
    lease.onLost((holder) => {
      lost = holder;
    });
    const running = lease.run(stop.signal);
    const end = async () => {
      stop.abort();
      await running;
    };
    return { lease, lost: () => lost, newer: () => newer, stop: end, signal: stop.signal, state };
  };
  const record = () => kube.peek(resources.leases, key)?.spec;
  return { clock, kube, candidate, record, cluster };
}

type World = ReturnType<typeof world>;

/** Whoever comes next finds a Lease with a history, and nobody who holds it. */
async function takeAndGiveBack(clock: World["clock"], one: ReturnType<World["candidate"]>): Promise<void> {
  const taken = one.lease.acquire(one.signal);
  await clock.advance(10);
  await taken;
  await one.stop();
  await one.lease.release();
}

describe("PrimaryLease", () => {
  test("first boot: acquires at once and renews every retry period", async () => {
    const { clock, candidate, record, kube } = world();
    const one = candidate("c-1");
    const result = one.lease.acquire(one.signal);
    await clock.advance(10);
    expect(await result).toEqual({ kind: "held" });
    expect(record()).toMatchObject({ holderIdentity: "c-1", leaseTransitions: 1, leaseDurationSeconds: 15 });
    const writes = () => kube.requests.filter((request) => request.verb === "update").length;
    const before = writes();
    await clock.advance(10_000);
    expect(writes() - before).toBe(5);
    expect(one.lease.held).toBe(true);
    await one.stop();
  });

  test("a standby that is not asked only looks", async () => {
    const { clock, candidate, kube } = world();
    const two = candidate("c-2");
    await clock.advance(20_000);
    expect(kube.requests.every((request) => request.verb === "get")).toBe(true);
    expect(two.lease.held).toBe(false);
    await two.stop();
  });

  test("a released lease is taken over within a fraction of a second", async () => {
    const { clock, candidate, record } = world();
    const one = candidate("c-1");
    const first = one.lease.acquire(one.signal);
    await clock.advance(10);
    await first;
    const two = candidate("c-2");
    const second = two.lease.acquire(two.signal);
    await clock.advance(3_000);
    expect(two.lease.held).toBe(false);
    await one.stop();
    await one.lease.release();
    expect(record()).toMatchObject({ holderIdentity: "", leaseDurationSeconds: 1 });
    await clock.advance(200);
    expect(await second).toEqual({ kind: "held" });
    expect(record()).toMatchObject({ holderIdentity: "c-2", leaseTransitions: 2 });
    await two.stop();
  });

  test("who takes a lease knows the record before it, and what a primary that was stopped in order wrote there", async () => {
    const { clock, candidate } = world();
    const one = candidate("c-1");
    const first = one.lease.acquire(one.signal);
    await clock.advance(10);
    await first;
    expect(one.lease.replaced).toMatchObject({ holder: "", transitions: 0 });
    await clock.advance(3_000);
    expect(one.lease.replaced?.transitions).toBe(0);
    const two = candidate("c-2");
    const second = two.lease.acquire(two.signal);
    await one.stop();
    await one.lease.release("0/5000028");
    expect(one.lease.replaced).toBeUndefined();
    await clock.advance(200);
    expect(await second).toEqual({ kind: "held" });
    expect(two.lease.replaced?.voters).toMatchObject({ releasedBy: "c-1", walEnd: "0/5000028" });
    await two.stop();
    await two.lease.release();
    const three = candidate("c-1");
    const third = three.lease.acquire(three.signal);
    await clock.advance(200);
    expect(await third).toEqual({ kind: "held" });
    expect(three.lease.replaced?.voters?.releasedBy).toBe("c-2");
    expect(three.lease.replaced?.voters?.walEnd).toBeUndefined();
    await three.stop();
  });

  test("who found the lease to be its own knows of no record before it", async () => {
    const { clock, candidate } = world();
    const one = candidate("c-1");
    const first = one.lease.acquire(one.signal);
    await clock.advance(10);
    await first;
    await one.stop();
    const again = candidate("c-1");
    again.lease.adoptPrimary(5_000);
    await clock.advance(1_000);
    expect(again.lease.held).toBe(true);
    expect(again.lease.replaced).toBeUndefined();
    await again.stop();
  });

  test("a dead holder's lease is taken a lease duration after its last renewal, not earlier", async () => {
    const { clock, candidate } = world();
    const one = candidate("c-1");
    const first = one.lease.acquire(one.signal);
    await clock.advance(10);
    await first;
    const two = candidate("c-2");
    await clock.advance(5_000);
    await one.stop();
    const died = clock.monotonicMs();
    const second = two.lease.acquire(two.signal);
    while (!two.lease.held && clock.monotonicMs() - died < 30_000) {
      await clock.advance(100);
      // The old holder's right ends before anyone else's begins.
      expect(one.lease.held && two.lease.held).toBe(false);
    }
    const waited = clock.monotonicMs() - died;
    expect(waited).toBeGreaterThan(12_900);
    expect(waited).toBeLessThan(15_700);
    expect(await second).toEqual({ kind: "held" });
    await two.stop();
  });

  test("the right ends with the API server, the requests stay few, and it comes back by itself", async () => {
    const { clock, candidate, kube } = world();
    const one = candidate("c-1");
    const first = one.lease.acquire(one.signal);
    await clock.advance(10);
    await first;
    kube.intercept(() => fault("unavailable"));
    const before = kube.requests.length;
    await clock.advance(60_000);
    expect(kube.requests.length - before).toBeLessThanOrEqual(31);
    expect(one.lease.held).toBe(false);
    expect(one.lost()).toBeUndefined();
    kube.intercept(undefined);
    await clock.advance(4_000);
    expect(one.lease.held).toBe(true);
    await one.stop();
  });

  test("a holder that finds another name in the lease is told that it lost", async () => {
    const { clock, candidate, kube } = world();
    const one = candidate("c-1");
    const first = one.lease.acquire(one.signal);
    await clock.advance(10);
    await first;
    const taken = kube.peek(resources.leases, key) as Lease;
    await kube.update(resources.leases, { ...taken, spec: { ...taken.spec, holderIdentity: "c-2" } });
    await clock.advance(3_000);
    expect(one.lost()).toBe("c-2");
    expect(one.lease.held).toBe(false);
    await one.stop();
  });

  test("a new pod of the holder's name waits like any other", async () => {
    const { clock, candidate } = world();
    const old = candidate("c-1", "old");
    const first = old.lease.acquire(old.signal);
    await clock.advance(10);
    await first;
    await old.stop();
    const fresh = candidate("c-1", "fresh");
    const second = fresh.lease.acquire(fresh.signal);
    await clock.advance(14_000);
    expect(fresh.lease.held).toBe(false);
    await clock.advance(2_000);
    expect(await second).toEqual({ kind: "held" });
    await fresh.stop();
  });

  test("the same pod goes on at once after its container was started again", async () => {
    const { clock, candidate } = world("c-1");
    const before = candidate("c-1");
    const first = before.lease.acquire(before.signal);
    await clock.advance(16_000);
    expect(await first).toEqual({ kind: "held" });
    await before.stop();
    const after = candidate("c-1");
    const second = after.lease.acquire(after.signal);
    await clock.advance(200);
    expect(await second).toEqual({ kind: "held" });
    await after.stop();
  });

  test("who is no voter is refused", async () => {
    const { clock, candidate } = world();
    await takeAndGiveBack(clock, candidate("c-1"));
    const nine = candidate("c-9");
    const refused = nine.lease.acquire(nine.signal);
    await clock.advance(1_500);
    expect(await refused).toMatchObject({ kind: "refused", reason: expect.stringContaining("not among the voters") });
    await nine.stop();
  });

  test("an acquisition gives up after its time, and the waiting goes on to be possible", async () => {
    const { clock, candidate } = world();
    const one = candidate("c-1");
    const first = one.lease.acquire(one.signal);
    await clock.advance(10);
    await first;
    const two = candidate("c-2");
    const second = two.lease.acquire(two.signal);
    await clock.advance(22_000);
    expect(await second).toMatchObject({ kind: "timeout" });
    await one.stop();
    await two.stop();
  });

  test("an idle look that hangs does not hold up an acquisition", async () => {
    const { clock, candidate, kube } = world();
    // As a request does whose answer never comes: it ends by its signal only.
    const slow = { ...kube } as typeof kube;
    let hang = true;
    slow.get = ((type, name, options) =>
      hang
        ? new Promise((_, reject) => options?.signal?.addEventListener("abort", () => reject(options.signal?.reason)))
        : kube.get(type, name, options)) as typeof kube.get;
    const one = candidate("c-1", "uid", { ...slow, update: kube.update.bind(kube) } as typeof kube);
    await clock.advance(100);
    hang = false;
    const first = one.lease.acquire(one.signal);
    await clock.advance(100);
    expect(await first).toEqual({ kind: "held" });
    await one.stop();
  });

  test("conflicts are met by reading again", async () => {
    const { clock, candidate, kube } = world();
    let conflicts = 2;
    kube.intercept((request) => (request.verb === "update" && conflicts-- > 0 ? fault("conflict") : undefined));
    const one = candidate("c-1");
    const first = one.lease.acquire(one.signal);
    await clock.advance(200);
    expect(await first).toEqual({ kind: "held" });
    await one.stop();
  });

  test("a holder whose successor came and went is told that it lost", async () => {
    const { clock, candidate, kube } = world();
    const one = candidate("c-1");
    const first = one.lease.acquire(one.signal);
    await clock.advance(10);
    await first;
    const mine = kube.peek(resources.leases, key) as Lease;
    await kube.update(resources.leases, { ...mine, spec: { ...mine.spec, holderIdentity: "", leaseTransitions: 2 } });
    await clock.advance(3_000);
    expect(one.lost()).toBe("");
    expect(one.lease.held).toBe(false);
    await one.stop();
  });

  test("a primary that runs already renews at once, and is stopped when another one took its lease", async () => {
    const { clock, candidate, record, kube } = world("c-1");
    const before = candidate("c-1");
    const first = before.lease.acquire(before.signal);
    await clock.advance(16_000);
    await first;
    await before.stop();
    const after = candidate("c-1");
    after.lease.adoptPrimary();
    await clock.advance(100);
    expect(after.lease.held).toBe(true);
    expect(record()?.leaseTransitions).toBe(1);
    await after.stop();
    const mine = kube.peek(resources.leases, key) as Lease;
    await kube.update(resources.leases, { ...mine, spec: { ...mine.spec, holderIdentity: "", leaseTransitions: 2 } });
    const late = candidate("c-1");
    late.lease.adoptPrimary();
    await clock.advance(100);
    expect(late.lost()).toBe("");
    await late.stop();
  });

  test("a primary that runs already claims no lease that was made anew before it knows the Cluster", async () => {
    const { clock, candidate, record, cluster } = world("c-2");
    const one = candidate("c-1");
    one.state.cluster = undefined;
    one.lease.adoptPrimary();
    await clock.advance(5_000);
    expect(record()?.holderIdentity).toBeUndefined();
    one.state.cluster = cluster;
    await clock.advance(5_000);
    expect(record()?.holderIdentity).toBeUndefined();
    expect(one.lease.held).toBe(false);
    await one.stop();
  });

  test.each([
    ["has not ended", 5_000, "c-1"],
    ["ended", -1_000, undefined],
  ])(
    "a primary that is not recorded as the current one, under a lease made anew: its right %s",
    async (_, deadlineMs, holder) => {
      const { clock, candidate, record } = world("c-2");
      const one = candidate("c-1");
      const timings = {
        leaseDurationMs: 15_000,
        renewDeadlineMs: 10_000,
        retryPeriodMs: 2_000,
        releasedDurationSeconds: 1,
      };
      await clock.advance(60_000);
      const ground = { transitions: 3, voters: ["c-1", "c-2"], maybeVoters: [] };
      one.lease.adoptPrimary(deadlineMs, { ground, timings, peers: {} });
      await clock.advance(1_000);
      expect(record()?.holderIdentity).toBe(holder);
      expect(one.lease.held).toBe(holder !== undefined);
      await one.stop();
    },
  );

  test("whoever is told late of a successor that came and went does not take the lease by what was", async () => {
    const { clock, candidate, record, kube, cluster } = world();
    await takeAndGiveBack(clock, candidate("c-1"));
    const former = candidate("c-1", "next");
    const status = (name: string) => ({ ...cluster.status, currentPrimary: name, targetPrimary: name });
    former.state.cluster = { ...cluster, status: status("c-1") };
    const live = await kube.get(resources.clusters, key);
    await kube.update(resources.clusters, { ...live, status: status("c-2") }, { subresource: "status" });
    const again = former.lease.acquire(former.signal);
    await clock.advance(5_000);
    expect(await again).toMatchObject({ kind: "refused", reason: expect.stringContaining("c-2") });
    expect(record()?.holderIdentity).toBe("");
    expect(former.newer()?.status?.currentPrimary).toBe("c-2");
    await former.stop();
  });

  test("who waited in vain does not take the lease later", async () => {
    const { clock, candidate, record } = world();
    const one = candidate("c-1");
    const first = one.lease.acquire(one.signal);
    await clock.advance(10);
    await first;
    const two = candidate("c-2");
    const giveUp = new AbortController();
    const second = two.lease.acquire(giveUp.signal);
    await clock.advance(1_000);
    giveUp.abort();
    await clock.advance(1_000);
    expect(await second).toMatchObject({ kind: "timeout" });
    await one.stop();
    await one.lease.release();
    await clock.advance(60_000);
    expect(record()?.holderIdentity).toBe("");
    await two.stop();
  });

  test("a claim that arrives after nobody wants it is given back", async () => {
    const { clock, candidate, kube, record } = world();
    const slow = { get: kube.get.bind(kube) } as typeof kube;
    slow.update = (async (type, object, options) => {
      const written = await kube.update(type, object, options);
      await clock.sleep(500);
      return written;
    }) as typeof kube.update;
    const one = candidate("c-1", "uid", slow);
    const giveUp = new AbortController();
    const first = one.lease.acquire(giveUp.signal);
    await clock.advance(100);
    expect(record()?.holderIdentity).toBe("c-1");
    giveUp.abort();
    await one.lease.standDown();
    await clock.advance(2_000);
    expect(await first).toMatchObject({ kind: "timeout" });
    expect(record()?.holderIdentity).toBe("");
    expect(one.lease.held).toBe(false);
    await one.stop();
  });

  test("tells that it is engaged before it writes anything, and until it was given back", async () => {
    const { clock, candidate, kube, record } = world();
    const told: string[] = [];
    const noteWith = (isEngaged: boolean) => {
      const writes = kube.requests.filter((request) => request.verb === "update").length;
      told.push(
        `${isEngaged ? "engaged" : "free"} after ${writes} writes, held by ${record()?.holderIdentity || "nobody"}`,
      );
    };
    const one = candidate("c-1", "uid-c-1", kube, async (isEngaged) => noteWith(isEngaged));
    await clock.advance(2_000);
    expect(told).toEqual([]);
    const first = one.lease.acquire(one.signal);
    await clock.advance(10);
    await first;
    await clock.advance(4_000);
    expect(told).toEqual(["engaged after 0 writes, held by nobody"]);
    await one.lease.release();
    expect(told[1]).toMatch(/^free after [2-9] writes, held by nobody$/);
    await clock.advance(5_000);
    expect(told).toHaveLength(2);
    await one.stop();
  });

  test("a longer list is written only once the next runtime would know of it", async () => {
    const { clock, candidate, cluster, record } = world();
    const waiting: (() => void)[] = [];
    let isSlow = false;
    const seen: string[] = [];
    const one = candidate("c-1", "uid-c-1", undefined, undefined, async (right) => {
      seen.push([...(right?.voters ?? []), ...(right?.maybeVoters ?? [])].join());
      if (isSlow) await new Promise<void>((resolve) => waiting.push(resolve));
    });
    const first = one.lease.acquire(one.signal);
    await clock.advance(10);
    await first;
    isSlow = true;
    one.state.cluster = {
      ...cluster,
      status: { instanceNames: ["c-1", "c-2", "c-3"], instancesStatus: { healthy: ["c-1", "c-2", "c-3"] } },
    };
    const { renewTime } = record() ?? {};
    await clock.advance(4_000);
    expect(seen.at(-1)).toContain("c-3");
    expect(record()?.renewTime).toBe(renewTime);
    isSlow = false;
    for (const goOn of waiting) goOn();
    await clock.advance(10);
    expect(record()?.renewTime).not.toBe(renewTime);
    await one.stop();
  });

  test("whoever can't be told of the right keeps a longer list from being written, and nothing else", async () => {
    const { clock, candidate, cluster, record } = world();
    let isDeaf = false;
    const one = candidate("c-1", "uid-c-1", undefined, undefined, async () => {
      if (isDeaf) throw new Error("the channel is closed");
    });
    const first = one.lease.acquire(one.signal);
    await clock.advance(10);
    await first;
    isDeaf = true;
    one.state.cluster = { ...cluster, status: { ...cluster.status, instanceNames: ["c-1", "c-2", "c-3"] } };
    const { renewTime } = record() ?? {};
    await clock.advance(4_000);
    expect(record()?.renewTime).toBe(renewTime);
    await one.lease.release();
    expect(record()?.holderIdentity).toBe("");
    await one.stop();
  });

  test("what the runtime before kept says whom to ask and for how long, until the Lease can be read", async () => {
    const { clock, candidate, kube } = world();
    kube.intercept(() => fault("unavailable"));
    const one = candidate("c-1");
    const ground = { transitions: 3, voters: ["c-1", "c-2"], maybeVoters: [] };
    const timings = {
      leaseDurationMs: 30_000,
      renewDeadlineMs: 20_000,
      retryPeriodMs: 2_000,
      releasedDurationSeconds: 1,
    };
    one.lease.adoptPrimary(15_000, { ground, timings, peers: {} });
    expect(one.lease.timings).toEqual(timings);
    expect(one.lease.right).toMatchObject(ground);
    await clock.advance(5_000);
    one.lease.applyRound({ startedAt: 4_000, transitions: 3, grantedBy: ["c-2"] });
    expect(one.lease.right).toEqual({ ...ground, basis: 4_000 });
    await clock.advance(12_000);
    expect(one.lease.rightState.kind).toBe("good");
    await one.stop();
  });

  test("tells whom the Lease names", async () => {
    const { clock, candidate, kube } = world();
    const old = candidate("c-1", "old");
    expect(await old.lease.readHolder(old.signal)).toBe("nobody");
    const first = old.lease.acquire(old.signal);
    await clock.advance(10);
    await first;
    await old.stop();
    const fresh = candidate("c-1", "fresh");
    const two = candidate("c-2");
    expect(await candidate("c-1", "old").lease.readHolder(fresh.signal)).toBe("me");
    expect(await fresh.lease.readHolder(fresh.signal)).toBe("former");
    expect(await two.lease.readHolder(two.signal)).toBe("other");
    kube.intercept(() => fault("unavailable"));
    expect(await two.lease.readHolder(two.signal)).toBeUndefined();
    await fresh.stop();
    await two.stop();
  });
});
