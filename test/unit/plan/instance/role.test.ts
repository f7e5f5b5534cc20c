import { describe, expect, test } from "vitest";
import { planRole, type RoleDecision, type RoleView } from "../../../../src/plan/instance/role.ts";

const base: RoleView = {
  me: "c-1",
  current: "c-1",
  target: { kind: "instance", name: "c-1" },
  replicaCluster: false,
  dataRole: "primary",
  started: false,
  timeline: 1,
  clusterTimeline: 1,
};
const other = { kind: "instance", name: "c-2" } as const;

const table: [string, Partial<RoleView>, Partial<RoleDecision>][] = [
  ["first boot", { current: "" }, { kind: "primary", claimCurrent: true }],
  ["primary that comes back", {}, { kind: "primary", claimCurrent: false }],
  ["primary that runs", { started: true }, { kind: "primary", claimCurrent: false }],
  ["promotion not recorded", { current: "c-2", timeline: 2 }, { kind: "primary", claimCurrent: true }],
  ["promotion not recorded, still running", { current: "c-2", started: true }, { kind: "primary", claimCurrent: true }],
  ["stale primary chosen again", { current: "c-2" }, { kind: "wait" }],
  ["stale primary of unknown timeline", { current: "c-2", timeline: undefined }, { kind: "wait" }],
  ["no target yet", { target: { kind: "none" }, current: "" }, { kind: "wait" }],
  ["no target, running", { target: { kind: "none" }, started: true }, { kind: "wait" }],
  ["old primary, running", { target: other, started: true }, { kind: "stop", urgent: false }],
  ["failover, running", { target: { kind: "pending" }, started: true }, { kind: "stop", urgent: true }],
  ["failover, not started", { target: { kind: "pending" } }, { kind: "waitForPrimary" }],
  ["old primary, successor not up", { target: other }, { kind: "waitForPrimary" }],
  ["old primary, successor up", { target: other, current: "c-2" }, { kind: "demote", rewind: true }],
  ["standby", { dataRole: "standby", target: other, current: "c-2" }, { kind: "standby", designated: false }],
  ["standby during a failover", { dataRole: "standby", target: { kind: "pending" } }, { kind: "standby" }],
  ["chosen standby", { dataRole: "standby", current: "c-2" }, { kind: "promote", waitForReceiver: true }],
  ["current primary with a standby's data", { dataRole: "standby" }, { kind: "promote", waitForReceiver: false }],
  ["designated primary", { dataRole: "standby", replicaCluster: true }, { kind: "standby", designated: true }],
  ["became a replica cluster", { replicaCluster: true }, { kind: "demote", rewind: false }],
  ["became a replica cluster, running", { replicaCluster: true, started: true }, { kind: "wait" }],
];

describe("planRole", () => {
  test.each(table)("%s", (_name, view, expected) => {
    expect(planRole({ ...base, ...view })).toMatchObject(expected);
  });

  test("a primary's data never starts while another instance is the target, whatever else holds", () => {
    for (const current of ["", "c-1", "c-2"])
      for (const started of [false, true])
        for (const target of [other, { kind: "pending" } as const, { kind: "none" } as const])
          for (const timeline of [undefined, 1, 9]) {
            const decision = planRole({ ...base, current, started, target, timeline });
            expect(["primary", "promote"]).not.toContain(decision.kind);
          }
  });
});
