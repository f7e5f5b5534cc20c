import { describe, expect, it } from "vitest";
import { matchesFieldSelector, matchesLabelSelector } from "../../../src/kube/selectors.ts";

describe("matchesLabelSelector", () => {
  const labels = { app: "pg", role: "primary", "cnpg.io/cluster": "demo" };
  it.each([
    [undefined, true],
    ["", true],
    ["app=pg", true],
    ["app==pg,role!=replica", true],
    ["cnpg.io/cluster=demo,role=replica", false],
    ["role in (primary, replica)", true],
    ["role in (replica),app", false],
    ["role notin (replica)", true],
    ["missing notin (x)", true],
    ["missing!=x", true],
    ["!missing", true],
    ["!app", false],
    ["app", true],
    ["missing", false],
  ])("%s is %s", (selector, expected) => {
    expect(matchesLabelSelector(selector, labels)).toBe(expected);
  });

  it("refuses what it cannot read instead of guessing", () => {
    expect(() => matchesLabelSelector("a >> b", labels)).toThrow("cannot be read");
  });
});

describe("matchesFieldSelector", () => {
  const pod = { metadata: { name: "a", namespace: "ns" }, status: { phase: "Running" } };
  it.each([
    ["metadata.name=a", true],
    ["metadata.name=a,status.phase!=Running", false],
    ["status.phase==Running", true],
    ["spec.nodeName=", true],
    ["metadata.namespace!=ns", false],
  ])("%s is %s", (selector, expected) => {
    expect(matchesFieldSelector(selector, pod)).toBe(expected);
  });
});
