import { expect, test } from "vitest";
import { type CachedStartView, planCachedStart } from "../../../../src/plan/instance/cached-start.ts";

const view: CachedStartView = {
  unreachable: true,
  attempts: 2,
  dataRole: "standby",
  notedPod: "uid",
  myPod: "uid",
  unfinished: false,
};

test.each<[string, Partial<CachedStartView>, "start" | "wait"]>([
  ["a standby that ran here before", {}, "start"],
  ["a primary", { dataRole: "primary" }, "wait"],
  ["the API server says no, or that there is no such Cluster", { unreachable: false }, "wait"],
  ["the first look failed only just now", { attempts: 1 }, "wait"],
  ["the fifth look failed", { attempts: 5 }, "start"],
  ["it never ran here, or was fenced", { notedPod: undefined }, "wait"],
  ["another pod of the name ran it", { notedPod: "other" }, "wait"],
  ["its folder is half rewound, or half a copy", { unfinished: true }, "wait"],
])("without its Cluster: %s", (_about, change, kind) => {
  expect(planCachedStart({ ...view, ...change }).kind).toBe(kind);
});
