import { describe, expect, test } from "vitest";
import type { Cluster } from "../../../../src/api/generated/cluster.ts";
import {
  asksBeforePromotion,
  type PromotionView,
  peersToAsk,
  planPromotion,
  positionOf,
} from "../../../../src/plan/instance/promotion.ts";

const record = { method: "ANY", standbyNumber: 1, standbyNames: ["b", "c"], primary: "a" };
const view: PromotionView = {
  me: "b",
  former: "a",
  position: 100n,
  formerEnd: undefined,
  peers: [{ name: "c", position: 100n }],
  quorum: "notAsked",
};
const c = (position: bigint | undefined) => [{ name: "c", position }];

describe("an instance that holds the lease and asked the others", () => {
  test.each<[string, Partial<PromotionView>, string, RegExp]>([
    ["promotes when the other has as much", {}, "promote", /nobody/],
    ["promotes when the other has less", { peers: c(99n) }, "promote", /nobody/],
    ["leaves the place to one that has more", { peers: c(101n) }, "decline now", /c has WAL of a/],
    ["leaves it when its own position can't be told", { position: undefined, peers: c(0n) }, "decline now", /c has/],
    ["promotes without an answer where no quorum is asked for", { peers: c(undefined) }, "promote", /nobody/],
    ["promotes where there is nobody to ask", { peers: [] }, "promote", /nobody/],
    ["promotes with the quorum of those who answer", { quorum: record }, "promote", /nobody/],
    ["takes no answer for no less", { quorum: record, peers: c(undefined) }, "decline later", /only 1 of 2/],
    [
      "does not count itself unless it knows its position",
      { quorum: record, position: undefined, peers: [] },
      "decline later",
      /only 0 of 2/,
    ],
    ["wants a record", { quorum: undefined }, "decline later", /no failover quorum/],
    ["wants one that is set", { quorum: {} }, "decline later", /not set/],
    ["wants the record of the former primary", { quorum: { ...record, primary: "c" } }, "decline later", /is of c/],
    ["one that has more goes before the quorum", { quorum: undefined, peers: c(101n) }, "decline now", /c has/],
    [
      "asks nobody when all WAL of the former one is here",
      { formerEnd: 100n, quorum: record, peers: c(undefined) },
      "promote",
      /all WAL of a/,
    ],
    [
      "asks when some of it is missing",
      { formerEnd: 101n, quorum: record, peers: c(undefined) },
      "decline later",
      /only 1/,
    ],
  ])("%s", (_, change, expected, reason) => {
    const decision = planPromotion({ ...view, ...change });
    const when = decision.kind === "decline" ? ` ${decision.final ? "now" : "later"}` : "";
    expect(`${decision.kind}${when}`).toBe(expected);
    expect(decision.reason).toMatch(reason);
  });

  test("says who did not answer, and what a person can do", () => {
    const decision = planPromotion({ ...view, quorum: record, peers: c(undefined) });
    expect(decision.reason).toBe(
      "only 1 of 2 synchronous standbys can take over, 1 acknowledge. c did not tell b how much WAL is there. Let the instances " +
        "reach each other; or, to go on with what b has and lose what it may lack, annotate the Cluster with cnpg-ts.dev/namedPrimary=b",
    );
  });
});

const cluster = (spec: object, annotations: Record<string, string> = {}) =>
  ({
    metadata: { name: "lab", annotations },
    spec,
    status: { instanceNames: ["a", "b", "c"], currentPrimary: "a" },
  }) as unknown as Cluster;
const required = { postgresql: { synchronous: { method: "any", number: 1 } } };

test.each<[string, Cluster, boolean]>([
  ["without synchronous replication", cluster({}), false],
  ["with it", cluster(required), true],
  ["with the old settings", cluster({ minSyncReplicas: 1, maxSyncReplicas: 1 }), true],
  [
    "when it only is preferred",
    cluster({ postgresql: { synchronous: { method: "any", number: 1, dataDurability: "preferred" } } }),
    false,
  ],
  ["in a replica cluster", cluster({ ...required, replica: { enabled: true, source: "x" } }), false],
  ["when a person named this instance", cluster(required, { "cnpg-ts.dev/namedPrimary": "b" }), false],
  ["when a person named another one", cluster(required, { "cnpg-ts.dev/namedPrimary": "c" }), true],
])("whether the others are asked %s", (_, given, expected) => {
  expect(asksBeforePromotion(given, "b")).toBe(expected);
});

test("everybody but the former primary is asked", () => {
  expect(peersToAsk(cluster(required), "b")).toEqual(["c"]);
});

test.each<[string, Parameters<typeof positionOf>[0], bigint | undefined]>([
  ["what was received", { isPrimary: false, receivedLsn: "0/20", replayLsn: "0/10" }, 0x20n],
  ["what was replayed beyond it", { isPrimary: false, receivedLsn: "0/10", replayLsn: "0/30" }, 0x30n],
  ["only what was replayed", { isPrimary: false, replayLsn: "0/30" }, 0x30n],
  ["nothing while it is rewound", { isPrimary: false }, undefined],
  ["nothing of garbage", { isPrimary: false, receivedLsn: "x" }, undefined],
  ["nothing of a primary", { isPrimary: true, receivedLsn: "0/20" }, undefined],
  ["nothing of an answer that is none", {}, undefined],
  [
    "nothing while there may be more on its disk",
    { isPrimary: false, receivedLsn: "0/20", cnpgTs: { walEndKnown: false } },
    undefined,
  ],
])("a status tells %s", (_, status, expected) => {
  expect(positionOf(status)).toBe(expected);
});
