import { expect, it } from "vitest";
import type { Lease } from "../../../../src/api/generated/kubernetes.ts";
import { annotations } from "../../../../src/api/labels.ts";
import { planStatusLimit } from "../../../../src/plan/cluster/status-call.ts";

function aLease(holderIdentity: string, releasedBy?: string): Lease {
  const voters = JSON.stringify({ voters: ["c-1", "c-2"], holderUID: "u", releasedBy });
  return {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { name: "c", annotations: { [annotations.leaseVoters]: voters } },
    spec: { holderIdentity },
  };
}

it.each<[string, Lease | undefined, number]>([
  ["there is no lease", undefined, 5_000],
  ["it holds the lease", aLease("c-1"), 5_000],
  ["another one holds the lease", aLease("c-2"), 5_000],
  ["another one holds the lease that it gave back", aLease("c-2", "c-1"), 5_000],
  ["it gave the lease back", aLease("", "c-1"), 1_000],
  ["another one gave the lease back", aLease("", "c-2"), 5_000],
  ["nobody ever held the lease", aLease(""), 5_000],
])("when %s, a status call to c-1 is bounded", (_, lease, limitMs) => {
  expect(planStatusLimit("c-1", lease)).toBe(limitMs);
});
