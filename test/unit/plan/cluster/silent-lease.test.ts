import { describe, expect, it, test } from "vitest";
import { annotations } from "../../../../src/api/labels.ts";
import type { PostgresStatus } from "../../../../src/api/pg-status.ts";
import { defaultBuildContext } from "../../../../src/build/context.ts";
import { buildLease } from "../../../../src/build/lease.ts";
import type { ObservedCluster } from "../../../../src/plan/cluster/observed.ts";
import { beginPass } from "../../../../src/plan/cluster/pass.ts";
import { planCluster } from "../../../../src/plan/cluster/plan-cluster.ts";
import { concludePrimaryLost } from "../../../../src/plan/cluster/silent-lease.ts";
import { aCluster, answered, aPod, aSettledObservation, aStatus, now, primaryStatus, silent } from "./fixtures.ts";

const status = { currentPrimary: "c-1", targetPrimary: "c-1", instances: 3, readyInstances: 3 };
const cluster = aCluster({}, status);
const pods = [1, 2, 3].map((serial) => aPod(cluster, serial));
const [first, second, third] = pods as [(typeof pods)[0], (typeof pods)[0], (typeof pods)[0]];
const quiet = { isWalReceiverActive: false, cnpgTs: { holder: "c-1", silentMs: 6_000 } };

function aLease(holder = "c-1", voters: string | undefined = '{"voters":["c-1","c-2","c-3"],"holderUID":"u1"}') {
  const lease = buildLease(cluster, defaultBuildContext);
  return {
    ...lease,
    metadata: { ...lease.metadata, uid: "uid-lease", annotations: voters ? { [annotations.leaseVoters]: voters } : {} },
    spec: { holderIdentity: holder, renewTime: "t", leaseTransitions: 1 },
  };
}

function observe(witness: Partial<PostgresStatus>, fields: Partial<ObservedCluster> = {}): ObservedCluster {
  const instances = [
    silent(first),
    answered(second, aStatus({ ...quiet, ...witness })),
    answered(third, aStatus(quiet)),
  ];
  return aSettledObservation(cluster, { pods, instances, lease: aLease(), leaseUnchangedMs: 6_000, ...fields });
}

const conclude = (observed: ObservedCluster) =>
  concludePrimaryLost(beginPass(cluster, observed, now), observed.instances);

describe("a primary that is Ready and silent", () => {
  test("is lost once its lease is silent and nobody hears from it", () => {
    expect(conclude(observe({}))).toMatch(/c-1 does not answer, has not renewed its lease for 6 s/);
  });

  const givenBackBy = (name: string) =>
    aLease("", `{"voters":["c-1","c-2","c-3"],"holderUID":"u1","releasedBy":"${name}"}`);

  test("is lost once it has given its lease back and does not come back to it", () => {
    expect(conclude(observe({}, { lease: givenBackBy("c-1") }))).toMatch(
      /c-1 does not answer, gave its lease back 6 s/,
    );
  });

  test("is lost then also when a standby saw the lease change only just now", () => {
    const late = { cnpgTs: { holder: "", silentMs: 100 } };
    expect(conclude(observe(late, { lease: givenBackBy("c-1") }))).toMatch(/gave its lease back/);
  });

  const patient: [string, ObservedCluster][] = [
    ["the lease was renewed just now", observe({}, { leaseUnchangedMs: 4_999 })],
    ["nobody knows since when the lease is silent", { ...observe({}), leaseUnchangedMs: undefined } as never],
    ["another one holds the lease", observe({}, { lease: aLease("c-2") })],
    ["nobody knows who gave the lease back", observe({}, { lease: aLease("") })],
    ["another one gave the lease back", observe({}, { lease: givenBackBy("c-2") })],
    ["it gave its lease back just now", observe({}, { lease: givenBackBy("c-1"), leaseUnchangedMs: 4_999 })],
    ["a manager without voters wrote the lease", observe({}, { lease: aLease("c-1", "") })],
    ["there is no lease", observe({}, { lease: undefined })],
    ["a standby receives WAL", observe({ isWalReceiverActive: true })],
    ["a standby has promised it time", observe({ cnpgTs: { grant: { holder: "c-1", leftMs: 1 } } })],
    [
      "it gave its lease back, and a standby receives WAL",
      observe({ isWalReceiverActive: true }, { lease: givenBackBy("c-1") }),
    ],
    ["a standby saw a renewal", observe({ cnpgTs: { holder: "c-1", silentMs: 4_000 } })],
    ["nobody answers", observe({}, { instances: pods.map((pod) => silent(pod)) })],
    ["it answers", observe({}, { instances: [answered(first, primaryStatus()), answered(second, aStatus(quiet))] })],
  ];
  it.each(patient)("is not when %s", (_, observed) => {
    expect(conclude(observed)).toBeNull();
  });

  it("is failed over although Kubernetes counts its pod as Ready", () => {
    const { actions } = planCluster(cluster, observe({}), now);
    const patches = actions.flatMap((it) => (it.kind === "patchStatus" ? [JSON.stringify(it.patch)] : []));
    expect(patches.join()).toContain('"targetPrimary":"c-2"');
    expect(planCluster(cluster, observe({ isWalReceiverActive: true }), now).because).toContain("Ready but silent");
  });
});
