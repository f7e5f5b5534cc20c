import { describe, expect, it } from "vitest";
import {
  expectedSynchronousNumber,
  formatSynchronousMetadata,
  formatSynchronousStandbys,
  parseSynchronousMetadata,
  planSynchronousStandbys,
} from "../../../src/postgres/synchronous.ts";
import { aCluster } from "./a-cluster.ts";

type Synchronous = NonNullable<NonNullable<ReturnType<typeof aCluster>["spec"]["postgresql"]>["synchronous"]>;

function explicit(changes: Partial<Synchronous>, status = {}) {
  const synchronous: Synchronous = { method: "any", number: 1, ...changes };
  const standbys = planSynchronousStandbys(aCluster({ postgresql: { synchronous } }, status));
  return standbys && formatSynchronousStandbys(standbys);
}

describe("explicit synchronous replication", () => {
  it.each([
    ["all instances, the primary last", {}, {}, 'ANY 1 ("obs-2","obs-3","obs-1")'],
    ["first instead of any", { method: "first", number: 2 }, {}, 'FIRST 2 ("obs-2","obs-3","obs-1")'],
    [
      "healthy standbys before the others",
      {},
      { instancesStatus: { healthy: ["obs-1", "obs-3"], failed: ["obs-2"] } },
      'ANY 1 ("obs-3","obs-2","obs-1")',
    ],
    [
      "without a primary that nobody reported",
      {},
      { instancesStatus: { healthy: ["obs-2", "obs-3"] } },
      'ANY 1 ("obs-2","obs-3")',
    ],
    [
      "names of the user around at most so many of ours",
      { standbyNamesPre: ["pre"], standbyNamesPost: ['po"st'], maxStandbyNamesFromCluster: 1 },
      {},
      'ANY 1 ("pre","obs-2","po""st")',
    ],
    ["only names of the user", { standbyNamesPre: ["pre"], maxStandbyNamesFromCluster: 0 }, {}, 'ANY 1 ("pre")'],
    [
      "a name that blocks when nobody is known",
      { number: 2 },
      { instanceNames: [], instancesStatus: {} },
      'ANY 2 ("obs-placeholder")',
    ],
  ] as const)("required: %s", (_what, changes, status, expected) => {
    expect(explicit(changes as Partial<Synchronous>, status)).toBe(expected);
  });

  it.each([
    ["healthy standbys", { number: 1 }, {}, 'ANY 1 ("obs-2","obs-3")'],
    ["no more than there are", { number: 3 }, {}, 'ANY 2 ("obs-2","obs-3")'],
    ["cut to the limit", { number: 2, maxStandbyNamesFromCluster: 1 }, {}, 'ANY 1 ("obs-2")'],
    ["off without healthy standbys", { number: 1 }, { instancesStatus: { healthy: ["obs-1"] } }, undefined],
  ] as const)("preferred: %s", (_what, changes, status, expected) => {
    expect(explicit({ dataDurability: "preferred", ...changes }, status)).toBe(expected);
  });
});

describe("legacy synchronous replication", () => {
  const three = ["obs-1", "obs-2", "obs-3"];
  it.each([
    [0, 0, three, undefined],
    [1, 1, three, 'ANY 1 ("obs-2","obs-3")'],
    [1, 2, three, 'ANY 2 ("obs-2","obs-3")'],
    [1, 3, three, 'ANY 1 ("obs-2","obs-3")'],
    [2, 3, ["obs-1", "obs-2"], 'ANY 1 ("obs-2")'],
    [1, 1, ["obs-1"], undefined],
    [1, 1, [], undefined],
  ])("min %i, max %i, healthy %j", (minSyncReplicas, maxSyncReplicas, healthy, expected) => {
    const cluster = aCluster({ minSyncReplicas, maxSyncReplicas }, { instancesStatus: { healthy } });
    const standbys = planSynchronousStandbys(cluster);
    expect(standbys && formatSynchronousStandbys(standbys)).toBe(expected);
    expect(expectedSynchronousNumber(cluster)).toBe(standbys?.number ?? 0);
  });

  it("leaves out standbys in the primary's place when asked", () => {
    const spec = {
      minSyncReplicas: 1,
      maxSyncReplicas: 2,
      postgresql: { syncReplicaElectionConstraint: { enabled: true, nodeLabelsAntiAffinity: ["zone"] } },
    };
    const instances = { "obs-1": { zone: "a" }, "obs-2": { zone: "a" }, "obs-3": { zone: "b" } };
    const names = (topology: object) => planSynchronousStandbys(aCluster(spec, { topology }))?.standbyNames;
    expect(names({ successfullyExtracted: true, instances })).toEqual(["obs-3"]);
    expect(names({ successfullyExtracted: false })).toEqual(["obs-2", "obs-3"]);
    expect(names({ successfullyExtracted: true, instances: {} })).toBeUndefined();
  });
});

describe("metadata", () => {
  it("is read back as it was written", () => {
    const standbys = { method: "FIRST" as const, number: 2, standbyNames: ["a", 'b"c'] };
    const text = formatSynchronousMetadata(standbys);
    expect(text).toBe('{"method":"FIRST","number":2,"standbyNames":["a","b\\"c"]}');
    expect(parseSynchronousMetadata(text)).toEqual(standbys);
  });

  it.each(["", "null", "[]", "{", '{"method":"SOME","number":1,"standbyNames":[]}', '{"method":"ANY","number":"1"}'])(
    "refuses %j",
    (text) => {
      expect(parseSynchronousMetadata(text)).toBeUndefined();
    },
  );
});
