import { describe, expect, test } from "vitest";
import { withCondition } from "../../../src/instance/reconcile/cluster-status.ts";
import { compileExclusion } from "../../../src/instance/reconcile/slot-replicator.ts";
import { archivingCondition } from "../../../src/instance/wal/archiving-condition.ts";
import { checkOperator } from "../../../src/instance/web/operator-auth.ts";

describe("checkOperator", () => {
  test("no certificate", () => {
    expect(checkOperator(undefined, "00")).toEqual({ status: 401, body: "client certificate required" });
  });
  test("no fingerprint known", () => {
    expect(checkOperator(Buffer.from("x"), undefined)).toEqual({
      status: 503,
      body: "operator certificate not registered",
    });
  });
});

describe("withCondition", () => {
  const known = {
    type: "Ready",
    status: "True" as const,
    reason: "ClusterIsReady",
    message: "Cluster is Ready",
    lastTransitionTime: "2026-01-01T00:00:00Z",
  };
  const now = Date.UTC(2026, 10, 30);
  test("the same condition leaves the list as it is", () => {
    const list = [known];
    const { lastTransitionTime: _, ...same } = known;
    expect(withCondition(list, same, now)).toBe(list);
  });
  test("another text keeps the time of the transition", () => {
    const changed = withCondition([known], { ...known, message: "else" }, now);
    expect(changed).toEqual([{ ...known, message: "else" }]);
  });
  test("another status is a transition", () => {
    const [changed] = withCondition([known], { ...known, status: "False" }, now);
    expect(changed?.lastTransitionTime).toBe("2026-11-30T00:00:00Z");
  });
  test("a new one is added and the others stay", () => {
    expect(withCondition([known], { ...known, type: "Other" }, now)).toHaveLength(2);
  });
});

test("the archiving condition follows the error text", () => {
  expect(archivingCondition("")).toMatchObject({ status: "True", reason: "ContinuousArchivingSuccess" });
  expect(archivingCondition("no space")).toMatchObject({ status: "False", message: "no space" });
});

test("exclusion patterns are searched, and broken ones are told", () => {
  const { isExcluded, broken } = compileExclusion(["^my_", "b$", "("]);
  expect(["my_slot", "ab", "other"].map(isExcluded)).toEqual([true, true, false]);
  expect(broken).toEqual(["("]);
});
