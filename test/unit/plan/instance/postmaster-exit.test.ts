import { expect, test } from "vitest";
import { type PostmasterExitView, planPostmasterExit } from "../../../../src/plan/instance/postmaster-exit.ts";

const base: PostmasterExitView = {
  stopping: false,
  isPrimary: true,
  me: "c-1",
  current: "c-1",
  target: "c-1",
  leaseHeld: true,
  walSpace: "enough",
  earlier: [],
  now: 1_000_000,
};

test.each<[string, Partial<PostmasterExitView>, object]>([
  ["asked for", { stopping: true, walSpace: "full" }, { kind: "expected" }],
  ["crash of the primary", {}, { kind: "restart" }],
  ["crash without the lease", { leaseHeld: false }, { kind: "exit", code: 1 }],
  ["crash during a failover", { target: undefined }, { kind: "exit", code: 1 }],
  ["crash of an old primary", { target: "c-2" }, { kind: "exit", code: 1 }],
  ["crash before the promotion was recorded", { current: "c-2" }, { kind: "exit", code: 1 }],
  ["crash of a standby", { isPrimary: false, leaseHeld: false, target: "c-2", current: "c-2" }, { kind: "restart" }],
  ["full disk", { walSpace: "full" }, { kind: "exit", code: 4 }],
  ["unknown space is no reason to end", { walSpace: "unknown" }, { kind: "restart" }],
  ["third crash in a row", { earlier: [900_000, 950_000] }, { kind: "restart" }],
  ["fourth crash in a row", { earlier: [900_000, 950_000, 990_000] }, { kind: "exit", code: 1 }],
  ["crashes of long ago do not count", { earlier: [1, 2, 3, 4] }, { kind: "restart" }],
])("%s", (_name, view, expected) => {
  expect(planPostmasterExit({ ...base, ...view })).toMatchObject(expected);
});
