import { describe, expect, test } from "vitest";
import {
  isRewound,
  newestTimeline,
  planRole,
  planStart,
  type RoleDecision,
  type RoleView,
} from "../../../../src/plan/instance/role.ts";
import { parseControlData } from "../../../../src/postgres/control-data.ts";

const base: RoleView = {
  me: "c-1",
  current: "c-1",
  target: { kind: "instance", name: "c-1" },
  replicaCluster: false,
  dataRole: "primary",
  rewound: false,
  rewindUnfinished: false,
  running: false,
  leaseHolder: "nobody",
  timeline: 1,
  clusterTimeline: 1,
};
const other = { kind: "instance", name: "c-2" } as const;

const table: [string, Partial<RoleView>, Partial<RoleDecision>][] = [
  ["first boot", { current: "" }, { kind: "primary", claimCurrent: true }],
  ["primary that comes back", {}, { kind: "primary", claimCurrent: false }],
  ["primary that runs", { running: true }, { kind: "primary", claimCurrent: false }],
  ["promotion not recorded", { current: "c-2", timeline: 2 }, { kind: "primary", claimCurrent: true }],
  [
    "promotion not recorded, still running",
    { current: "c-2", running: true, leaseHolder: "me" },
    { kind: "primary", claimCurrent: true },
  ],
  [
    "promotion not recorded, killed before its checkpoint",
    { current: "c-2", leaseHolder: "me" },
    { kind: "primary", claimCurrent: true },
  ],
  [
    "promotion not recorded, pod made anew",
    { current: "c-2", leaseHolder: "former", timeline: 2 },
    { kind: "primary", claimCurrent: true },
  ],
  [
    "newer timeline, but another one holds the lease",
    { current: "c-2", leaseHolder: "other", timeline: 2 },
    { kind: "wait" },
  ],
  ["stale primary that still runs", { current: "c-2", running: true }, { kind: "stop", urgent: true }],
  [
    "stale primary that still runs while another one holds the lease",
    { current: "c-2", running: true, leaseHolder: "other", timeline: 2 },
    { kind: "stop", urgent: true },
  ],
  [
    "running, the lease can't be read",
    { current: "c-2", running: true, leaseHolder: undefined, timeline: 2 },
    { kind: "wait" },
  ],
  ["rewound, then killed", { rewound: true, target: other, current: "c-2" }, { kind: "demote", rewind: false }],
  ["rewound, then killed, then chosen", { rewound: true }, { kind: "demote", rewind: false }],
  [
    "half rewound, the other is primary",
    { rewindUnfinished: true, target: other, current: "c-2" },
    { kind: "demote", rewind: true },
  ],
  ["half rewound, no primary yet", { rewindUnfinished: true, target: other }, { kind: "waitForPrimary" }],
  ["half rewound, then chosen", { rewindUnfinished: true }, { kind: "wait" }],
  ["half rewound, then a replica cluster", { rewindUnfinished: true, replicaCluster: true }, { kind: "wait" }],
  ["stale primary chosen again", { current: "c-2" }, { kind: "wait" }],
  ["stale primary of unknown timeline", { current: "c-2", timeline: undefined }, { kind: "wait" }],
  ["no target yet", { target: { kind: "none" }, current: "" }, { kind: "wait" }],
  ["no target, running", { target: { kind: "none" }, running: true }, { kind: "wait" }],
  ["old primary, running", { target: other, running: true }, { kind: "stop", urgent: false }],
  ["failover, running", { target: { kind: "pending" }, running: true }, { kind: "stop", urgent: true }],
  ["failover, not running", { target: { kind: "pending" } }, { kind: "waitForPrimary" }],
  ["old primary, successor not up", { target: other }, { kind: "waitForPrimary" }],
  ["old primary, successor up", { target: other, current: "c-2" }, { kind: "demote", rewind: true }],
  ["standby", { dataRole: "standby", target: other, current: "c-2" }, { kind: "standby", designated: false }],
  ["standby during a failover", { dataRole: "standby", target: { kind: "pending" } }, { kind: "standby" }],
  ["chosen standby", { dataRole: "standby", current: "c-2" }, { kind: "promote", waitForReceiver: true }],
  ["current primary with a standby's data", { dataRole: "standby" }, { kind: "promote", waitForReceiver: false }],
  ["designated primary", { dataRole: "standby", replicaCluster: true }, { kind: "standby", designated: true }],
  ["became a replica cluster", { replicaCluster: true }, { kind: "demote", rewind: false }],
  [
    "an old primary in what is a replica cluster by now",
    { replicaCluster: true, current: "c-2", target: other },
    { kind: "demote", rewind: true },
  ],
  [
    "an old primary in what is a replica cluster by now, without a designated primary yet",
    { replicaCluster: true, current: "c-3", target: other },
    { kind: "waitForPrimary" },
  ],
  [
    "an old primary that is to be the designated one",
    { replicaCluster: true, current: "c-2" },
    { kind: "demote", rewind: false },
  ],
  ["became a replica cluster, running", { replicaCluster: true, running: true }, { kind: "wait" }],
];

describe("planRole", () => {
  test.each(table)("%s", (_name, view, expected) => {
    expect(planRole({ ...base, ...view })).toMatchObject(expected);
  });

  test("a primary's data never starts while another instance is the target, whatever else holds", () => {
    for (const current of ["", "c-1", "c-2"])
      for (const running of [false, true])
        for (const target of [other, { kind: "pending" } as const, { kind: "none" } as const])
          for (const timeline of [undefined, 1, 9]) {
            const decision = planRole({ ...base, current, running, target, timeline });
            expect(["primary", "promote"]).not.toContain(decision.kind);
          }
  });
});

test("the newest timeline counts the end of recovery, which a promotion records before its checkpoint", () => {
  const control = (text: string) => newestTimeline(parseControlData(text));
  expect(control("Latest checkpoint's TimeLineID:       3\nMin recovery ending loc's timeline:   4")).toBe(4);
  expect(control("Latest checkpoint's TimeLineID:       3\nMin recovery ending loc's timeline:   0")).toBe(3);
  expect(control("Min recovery ending loc's timeline:   4")).toBeUndefined();
});

test.each([
  ["a standby without the lease", "standby", false, other, "start"],
  ["a primary that may write", "primary", true, { kind: "instance", name: "c-1" }, "start"],
  ["a primary whose lease lapsed", "primary", false, { kind: "instance", name: "c-1" }, "refuse"],
  ["a primary that is no target any more", "primary", true, other, "refuse"],
  ["a primary while a new one is being chosen", "primary", true, { kind: "pending" }, "refuse"],
  ["a primary without a target", "primary", true, { kind: "none" }, "refuse"],
] as const)("planStart: %s", (_name, dataRole, leaseHeld, target, expected) => {
  expect(planStart({ me: "c-1", dataRole, leaseHeld, target }).kind).toBe(expected);
});

test.each([
  [true, "in archive recovery", true],
  [false, "in archive recovery", false],
  [true, "in production", false],
  [true, undefined, false],
] as const)("isRewound: label %s, state %s", (backupLabel, controlState, expected) => {
  expect(isRewound({ backupLabel, controlState })).toBe(expected);
});
