import { describe, expect, test } from "vitest";
import { formatFieldIssue, validateClusterCreate } from "../../../../src/schema/admission/index.ts";
import { aCluster, type ClusterParts, context, refusals } from "./a-cluster.ts";

const patch = (operations: unknown): ClusterParts => ({
  annotations: { "cnpg.io/podPatch": typeof operations === "string" ? operations : JSON.stringify(operations) },
});

const metadataRows: [rule: string, good: ClusterParts, bad: ClusterParts, refusal: RegExp][] = [
  [
    "name",
    { name: "a-1" },
    { name: "1a" },
    /^metadata\.name: Invalid value: "1a": cluster name must be a valid DNS label$/,
  ],
  [
    "length of the name",
    { name: "a".repeat(50) },
    { name: "a".repeat(51) },
    /^metadata\.name: Invalid value: "a{51}": the maximum length of a cluster name is 50 characters$/,
  ],
  [
    "hibernation",
    { annotations: { "cnpg.io/hibernation": "off" } },
    { annotations: { "cnpg.io/hibernation": "yes" } },
    /^metadata\.annotations\.cnpg\.io\/hibernation: Invalid value: "yes": Annotation value for hibernation should be "on" or "off"$/,
  ],
  [
    "failover quorum",
    { annotations: { "alpha.cnpg.io/failoverQuorum": "false" } },
    { annotations: { "alpha.cnpg.io/failoverQuorum": "maybe" } },
    /failoverQuorum: Invalid value: "maybe": Invalid failoverQuorum annotation value, expected boolean\.$/,
  ],
  [
    "liveness pinger",
    { annotations: { "alpha.cnpg.io/livenessPinger": '{"enabled":false}' } },
    { annotations: { "alpha.cnpg.io/livenessPinger": '{"requestTimeout":5}' } },
    /^metadata\.annotations\.alpha\.cnpg\.io\/livenessPinger: Invalid value: .*: error decoding liveness pinger config: /,
  ],
  [
    "form of the pod patch",
    patch([{ op: "add", path: "/metadata/labels/x", value: "y" }]),
    patch("{"),
    /^metadata\.annotations\.cnpg\.io\/podPatch: Invalid value: "\{": error decoding JSON patch: /,
  ],
  [
    "fit of the pod patch",
    patch([{ op: "add", path: "/metadata/labels/x", value: "y" }]),
    patch([{ op: "remove", path: "/metadata/labels/none" }]),
    /podPatch: Invalid value: .*: jsonpatch doesn't apply cleanly to the pod: /,
  ],
];

describe.each(metadataRows)("metadata: %s", (_rule, good, bad, refusal) => {
  const admission = { ...context, buildPod: () => ({ metadata: { labels: {} } }) };
  test("accepts", () => expect(refusals(good, admission)).toEqual([]));
  test("refuses", () => expect(refusals(bad, admission)).toEqual([expect.stringMatching(refusal)]));
});

test("asks for an owner when defaults were not applied", () => {
  const cluster = aCluster({ spec: { bootstrap: { initdb: { database: "a" } }, imageName: "pg:18" } });
  expect(validateClusterCreate(cluster, context).map(formatFieldIssue)).toEqual([
    'spec.bootstrap.initdb.owner: Invalid value: "": You need to specify the database owner user',
  ]);
});

test("finds everything that is wrong, once", () => {
  expect(refusals({ name: "A", spec: { storage: {}, imageName: "pg:latest", instances: 1 } })).toHaveLength(3);
});

test("checks nothing when the annotation turns validation off", () => {
  expect(refusals({ annotations: { "cnpg.io/validation": "disabled" }, spec: { storage: {} } })).toEqual([]);
  expect(refusals({ annotations: { "cnpg.io/validation": "whatever" }, spec: { storage: {} } })).toHaveLength(1);
});
