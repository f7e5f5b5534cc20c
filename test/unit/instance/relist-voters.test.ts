import { describe, expect, test } from "vitest";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import type { Lease } from "../../../src/api/generated/kubernetes.ts";
import { annotations } from "../../../src/api/labels.ts";
import { formatLeaseVoters, parseLeaseVoters } from "../../../src/api/lease-voters.ts";
import { createInstanceState } from "../../../src/instance/instance-state.ts";
import { PrimaryLease } from "../../../src/instance/primary-lease.ts";
import { resources } from "../../../src/kube/resources.ts";
import { mustRelist } from "../../../src/plan/instance/lease.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { createFakeKubeApi } from "../../support/fake-kube-api.ts";
import { captureLogs } from "../../support/log-capture.ts";

const record = {
  holder: "",
  renewTime: "t",
  transitions: 2,
  durationSeconds: 1,
  voters: { voters: ["c-1", "c-2"], holderUID: "u" },
};
const base = { me: "c-1", record, currentPrimary: "c-1", targetPrimary: "c-1", voters: ["c-1", "c-3"] };

describe("the list of voters of a lease that nobody holds is renewed", () => {
  test.each<[string, Partial<typeof base>, boolean]>([
    ["by the designated primary when others live in the cluster by now", {}, true],
    ["not when it is right", { voters: ["c-2", "c-1"] }, false],
    ["not by another instance", { me: "c-2" }, false],
    ["not while another is to be the designated primary", { targetPrimary: "c-2" }, false],
    ["not while somebody holds the lease", { record: { ...record, holder: "c-2" } }, false],
    ["not where the lease was made anew", { record: { ...record, transitions: 0 } }, false],
    ["not by one who is no voter", { record: { ...record, voters: { voters: ["c-2"], holderUID: "" } } }, false],
  ])("%s", (_, change, expected) => {
    expect(mustRelist({ ...base, ...change })).toBe(expected);
  });
});

test("a designated primary takes the lease for no longer than it needs to write the list, and has no right by it", async () => {
  const clock = createFakeClock();
  const kube = createFakeKubeApi({ clock });
  const key = { namespace: "ns", name: "c" };
  const voters = formatLeaseVoters({ voters: ["c-1", "c-2"], holderUID: "old" });
  const lease: Lease = {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { ...key, annotations: { [annotations.leaseVoters]: voters } },
    spec: {
      holderIdentity: "",
      leaseTransitions: 2,
      leaseDurationSeconds: 1,
      renewTime: "2026-01-01T00:00:00.000000Z",
    },
  };
  kube.seed(resources.leases, lease);
  const status = {
    currentPrimary: "c-1",
    targetPrimary: "c-1",
    instanceNames: ["c-1", "c-3"],
    instancesStatus: { healthy: ["c-1", "c-3"] },
  };
  const cluster = {
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Cluster",
    metadata: { ...key },
    spec: { instances: 2, replica: { enabled: true, source: "origin" } },
    status,
  } as unknown as Cluster;
  kube.seed(resources.clusters, cluster);
  const state = createInstanceState();
  state.cluster = cluster;
  const rights: unknown[] = [];
  const stop = new AbortController();
  const primary = new PrimaryLease({
    kube,
    clock,
    logger: captureLogs().logger,
    state,
    podName: "c-1",
    podUid: "uid-1",
    namespace: "ns",
    clusterName: "c",
    onRight: async (right) => void rights.push(right),
  });
  const running = primary.run(stop.signal);
  await clock.advance(1_000);
  await primary.standDown();
  await clock.advance(1_000);
  const now = kube.peek(resources.leases, key);
  expect(now?.spec).toMatchObject({ holderIdentity: "", leaseTransitions: 3, leaseDurationSeconds: 1 });
  expect(now && parseLeaseVoters(now)?.voters).toEqual(["c-1", "c-3"]);
  expect(primary.held).toBe(false);
  expect(rights.filter((right) => right !== undefined)).toEqual([]);
  const writes = () => kube.requests.filter(({ verb }) => verb === "update").length;
  const before = writes();
  await primary.standDown();
  await clock.advance(20_000);
  expect(writes()).toBe(before);
  stop.abort();
  await running;
});
