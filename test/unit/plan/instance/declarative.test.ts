import { expect, test } from "vitest";
import type { Database } from "../../../../src/api/generated/database.ts";
import { type DeclarativeView, planDeclarative, refuseDatabase } from "../../../../src/plan/instance/declarative.ts";

const fresh: DeclarativeView = {
  generation: 1,
  observedGeneration: 0,
  applied: undefined,
  deleting: false,
  hasFinalizer: true,
  reclaim: "delete",
  isReplicaCluster: false,
  winner: undefined,
};

test.each<[string, Partial<DeclarativeView>, object]>([
  ["a fresh one", {}, { kind: "apply" }],
  ["one that is done", { observedGeneration: 1, applied: true }, { kind: "nothing" }],
  ["one that failed after it was done", { observedGeneration: 1, applied: false }, { kind: "apply" }],
  [
    "one that was made from something older",
    { observedGeneration: 1, applied: true, outdated: true },
    { kind: "apply" },
  ],
  ["one that must not be", { refusal: "reserved" }, { kind: "refuse", message: "reserved" }],
  [
    "one that is done and must not be any more",
    { observedGeneration: 1, applied: true, refusal: "reserved" },
    { kind: "nothing" },
  ],
  [
    "deleted, and somebody else's by now",
    { deleting: true, observedGeneration: 1, refusal: "theirs" },
    { kind: "release", drop: false },
  ],
  ["a second one for the same name", { winner: "first" }, { kind: "conflict", winner: "first" }],
  ["a known one is no second one", { generation: 2, observedGeneration: 1, winner: "other" }, { kind: "apply" }],
  ["a replica cluster", { isReplicaCluster: true }, { kind: "waitForPromotion" }],
  ["deleted", { deleting: true, observedGeneration: 1 }, { kind: "release", drop: true }],
  ["deleted, never applied", { deleting: true }, { kind: "release", drop: false }],
  [
    "deleted, to be kept",
    { deleting: true, observedGeneration: 1, reclaim: "retain" },
    { kind: "release", drop: false },
  ],
  [
    "deleted in a replica cluster",
    { deleting: true, observedGeneration: 1, isReplicaCluster: true },
    { kind: "release", drop: false },
  ],
  ["deleted without our finalizer", { deleting: true, hasFinalizer: false }, { kind: "nothing" }],
])("%s", (_name, view, decision) => {
  expect(planDeclarative({ ...fresh, ...view })).toEqual(decision);
});

test("a Database that came past the webhooks is refused with each field that is wrong, and removed as any other", () => {
  const database = (metadata: object, extensions: string[]): Database => ({
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Database",
    metadata: { name: "far", ...metadata },
    spec: { name: "far", owner: "app", cluster: { name: "c" }, extensions: extensions.map((name) => ({ name })) },
  });
  expect(refuseDatabase(database({}, ["hstore", "ltree"]))).toBeUndefined();
  expect(refuseDatabase(database({}, ["hstore", "hstore"]))).toBe(
    'the resource failed admission validation on: spec.extensions[1].name: Duplicate value: "hstore"',
  );
  const off = { annotations: { "cnpg.io/validation": "disabled" } };
  expect(refuseDatabase(database(off, ["hstore", "hstore"]))).toBeUndefined();
  const leaving = { deletionTimestamp: "2026-01-01T00:00:00Z" };
  expect(refuseDatabase(database(leaving, ["hstore", "hstore"]))).toBeUndefined();
});
