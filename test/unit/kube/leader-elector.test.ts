import { describe, expect, it } from "vitest";
import type { Lease } from "../../../src/api/generated/kubernetes.ts";
import { createLeaderElector, LeadershipLostError } from "../../../src/kube/leader-elector.ts";
import { resources } from "../../../src/kube/resources.ts";
import { StopReason } from "../../../src/runtime/runnable.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { createFakeKubeApi, fault } from "../../support/fake-kube-api.ts";
import { captureLogs } from "../../support/log-capture.ts";
import { createSeededRandom } from "../../support/seeded-random.ts";

const key = { namespace: "cnpg-system", name: "db9c8771.cnpg.io" };

function aWorld() {
  const clock = createFakeClock();
  const api = createFakeKubeApi({ clock });
  const candidate = (identity: string) => {
    const story: string[] = [];
    const stop = new AbortController();
    const elector = createLeaderElector({
      api,
      ...key,
      identity,
      clock,
      random: createSeededRandom(identity.length),
      logger: captureLogs().logger,
      onStarted: () => story.push(`started at ${clock.monotonicMs()}`),
      onStopped: () => story.push("stopped"),
    });
    const running = elector.run(stop.signal);
    running.catch(() => undefined);
    return { elector, story, stop, running };
  };
  return { clock, api, candidate, lease: () => api.peek(resources.leases, key) as Lease };
}

describe("leader election", () => {
  it("makes one leader, and hands over at once when it stops", async () => {
    const { clock, candidate, lease } = aWorld();
    const first = candidate("first");
    await clock.settle();
    const second = candidate("second");
    await clock.advance(60_000);
    expect(first.elector.isLeader()).toBe(true);
    expect(second.elector.isLeader()).toBe(false);
    expect(lease().spec).toMatchObject({ holderIdentity: "first", leaseDurationSeconds: 15, leaseTransitions: 0 });
    first.stop.abort(new StopReason());
    await first.running;
    expect(first.story).toEqual(["started at 0", "stopped"]);
    expect(lease().spec?.holderIdentity).toBe("");
    await clock.advance(2_500);
    expect(second.elector.isLeader()).toBe(true);
    expect(lease().spec).toMatchObject({ holderIdentity: "second", leaseTransitions: 1 });
  });

  it("takes over from a holder that fell silent, after the whole duration", async () => {
    const { clock, api, candidate } = aWorld();
    api.seed(resources.leases, {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { ...key, annotations: { keep: "me" } },
      spec: {
        holderIdentity: "dead",
        leaseDurationSeconds: 15,
        renewTime: "2030-01-01T00:00:00.000000Z",
        leaseTransitions: 2,
      },
    });
    const next = candidate("next");
    await clock.advance(14_900);
    expect(next.elector.isLeader()).toBe(false);
    await clock.advance(3_000);
    expect(next.elector.isLeader()).toBe(true);
    expect(api.peek(resources.leases, key)).toMatchObject({
      metadata: { annotations: { keep: "me" } },
      spec: { leaseTransitions: 3 },
    });
  });

  it("ends within the deadline when it cannot renew, and gives nothing back", async () => {
    const { clock, api, candidate, lease } = aWorld();
    const leader = candidate("leader");
    await clock.advance(1_000);
    api.intercept(() => fault("unavailable"));
    await clock.advance(9_500);
    expect(leader.elector.isLeader()).toBe(false);
    await clock.advance(600);
    await expect(leader.running).rejects.toBeInstanceOf(LeadershipLostError);
    expect(leader.story.at(-1)).toBe("stopped");
    expect(lease().spec?.holderIdentity).toBe("leader");
  });

  it("ends within the deadline also when requests hang", async () => {
    const { clock, api, candidate } = aWorld();
    const leader = candidate("leader");
    await clock.advance(1_000);
    api.intercept(() => new Promise((resolve) => clock.sleep(60_000).then(() => resolve(undefined))));
    await clock.advance(9_000);
    expect(leader.elector.isLeader()).toBe(false);
  });

  it("counts the right to lead from before the renewal was sent, not from its answer", async () => {
    const { clock, api, candidate } = aWorld();
    const leader = candidate("leader");
    await clock.advance(1_900);
    let renewals = 0;
    api.intercept(async (request) => {
      if (request.verb === "get" && renewals === 0) return undefined;
      if (renewals++ > 0) return fault("unavailable");
      await clock.sleep(3_000);
      return undefined;
    });
    // The renewal begins at 2 s and its answer comes at 5 s; nothing succeeds afterwards.
    await clock.advance(11_900 - 1_900);
    expect(leader.elector.isLeader()).toBe(true);
    await clock.advance(200);
    expect(leader.elector.isLeader()).toBe(false);
  });

  it("goes on leading when a renewal's answer is lost", async () => {
    const { clock, api, candidate } = aWorld();
    const leader = candidate("leader");
    await clock.advance(1_000);
    let lost = 0;
    api.intercept((request) =>
      request.verb === "update" && lost++ % 2 === 0 ? fault("unavailable", { after: true }) : undefined,
    );
    await clock.advance(60_000);
    expect(leader.elector.isLeader()).toBe(true);
    expect(leader.story).toHaveLength(1);
  });

  it("stops when another holder is seen", async () => {
    const { clock, api, candidate, lease } = aWorld();
    const leader = candidate("leader");
    await clock.advance(1_000);
    const current = lease();
    await api.update(resources.leases, { ...current, spec: { ...current.spec, holderIdentity: "usurper" } });
    await clock.advance(2_500);
    await expect(leader.running).rejects.toThrow("was taken");
    expect(lease().spec?.holderIdentity).toBe("usurper");
  });

  it("keeps the Lease when leader work did not end in time", async () => {
    const { clock, candidate, lease } = aWorld();
    const leader = candidate("leader");
    await clock.advance(1_000);
    leader.stop.abort(new StopReason(["controller"]));
    await leader.running;
    expect(lease().spec?.holderIdentity).toBe("leader");
  });

  it("gives back a Lease that it took without hearing the answer", async () => {
    const { clock, api, candidate, lease } = aWorld();
    api.intercept((request) => (request.verb === "create" ? fault("unavailable", { after: true }) : undefined));
    const leader = candidate("leader");
    await clock.settle();
    expect(leader.elector.isLeader()).toBe(false);
    leader.stop.abort();
    await leader.running;
    expect(lease().spec?.holderIdentity).toBe("");
  });

  it("refuses timings that cannot work", () => {
    const clock = createFakeClock();
    const options = { api: createFakeKubeApi({ clock }), ...key, identity: "x", clock, logger: captureLogs().logger };
    expect(() => createLeaderElector({ ...options, renewDeadlineMs: 15_000 })).toThrow("leaseDuration > renewDeadline");
  });
});
