import { describe, expect, test } from "vitest";
import { type ClusterParts, refusals, type Spec } from "./a-cluster.ts";

const token = (content: unknown) => Buffer.from(JSON.stringify(content)).toString("base64");
const whole = {
  latestCheckpointTimelineID: "1",
  redoWalFile: "000000010000000000000003",
  databaseSystemIdentifier: "7",
  latestCheckpointREDOLocation: "0/3000028",
  timeOfLatestCheckpoint: "now",
  operatorVersion: "1.30.0",
};
const replica = (section: object, more: Spec = {}): ClusterParts => ({
  spec: {
    externalClusters: [{ name: "origin", connectionParameters: { host: "o" } }],
    bootstrap: { pg_basebackup: { source: "origin" } },
    ...more,
    replica: { source: "origin", ...section } as never,
  },
});

const replicaRows: [rule: string, good: ClusterParts, bad: ClusterParts, refusals: (string | RegExp)[]][] = [
  [
    "enabled or primary",
    replica({ enabled: true }),
    replica({ enabled: true, primary: "origin" }),
    ["spec.replica.enabled: Forbidden: replica mode enabled is not compatible with the primary field"],
  ],
  [
    "bootstrap of a new one",
    replica({ enabled: true }),
    replica({ enabled: true }, { bootstrap: { initdb: {} } }),
    [/^spec\.replica: Invalid value: .*: replica mode bootstrap is compatible only with pg_basebackup or recovery$/],
  ],
  [
    "bootstrap of an existing one",
    { ...replica({ enabled: true }, { bootstrap: { initdb: {} } }), resourceVersion: "1" },
    replica({ enabled: true }, { bootstrap: { initdb: {} } }),
    [/replica mode bootstrap is compatible only with/],
  ],
  [
    "known servers",
    replica({ self: "origin", primary: "origin" }),
    replica({ source: "x", self: "y", primary: "z" }),
    [
      'spec.replica.source: Invalid value: "x": External cluster x not found',
      'spec.replica.self: Invalid value: "y": External cluster y not found',
      'spec.replica.primary: Invalid value: "z": External cluster z not found',
    ],
  ],
  [
    "delay beside a token",
    replica({ enabled: false, promotionToken: token(whole) }),
    replica({ enabled: false, promotionToken: token(whole), minApplyDelay: "1h" }),
    ['spec.replica.minApplyDelay: Invalid value: "1h": minApplyDelay cannot be applied with a promotion token'],
  ],
  [
    "token of a replica",
    replica({ enabled: false, promotionToken: token(whole) }),
    replica({ enabled: true, promotionToken: token(whole) }),
    [/^spec\.replica\.promotionToken: Invalid value: .*: promotionToken is only allowed for primary clusters$/],
  ],
  [
    "form of the token",
    replica({ enabled: false }),
    replica({ enabled: false, promotionToken: "%" }),
    [/: Invalid promotionToken format: invalid promotion token \(Base64 decoding failed\)$/],
  ],
  [
    "content of the token",
    replica({ enabled: false }),
    replica({ enabled: false, promotionToken: token({ ...whole, redoWalFile: "" }) }),
    [/: Invalid promotionToken content: invalid promotion token \(\w+ is empty\)$/],
  ],
];

describe.each(replicaRows)("replica cluster: %s", (_rule, good, bad, expected) => {
  test("accepts", () => expect(refusals(good)).toEqual([]));
  test("refuses", () =>
    expect(refusals(bad)).toEqual(
      expected.map((text) => (typeof text === "string" ? text : expect.stringMatching(text))),
    ));
});
