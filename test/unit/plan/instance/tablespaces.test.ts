import { describe, expect, test } from "vitest";
import type { Cluster } from "../../../../src/api/generated/cluster.ts";
import { planTablespaces, type TablespaceStep, tablespaceState } from "../../../../src/plan/instance/tablespaces.ts";

type Wanted = NonNullable<Cluster["spec"]["tablespaces"]>[number];

interface View {
  wanted?: Partial<Wanted>;
  bootstrap?: Cluster["spec"]["bootstrap"];
  owners?: Record<string, string>;
  mounted?: string[];
  instanceNames?: string[];
  healthyPVC?: string[];
}

const bothVolumes = ["c-1", "c-1-tbs-my-hot", "c-2", "c-2-tbs-my-hot"];

function plan(view: View): TablespaceStep[] {
  const cluster: Cluster = {
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Cluster",
    metadata: { name: "c", namespace: "n" },
    spec: {
      instances: 2,
      ...(view.bootstrap ? { bootstrap: view.bootstrap } : {}),
      tablespaces: [{ name: "my_hot", storage: { size: "1Gi" }, ...view.wanted }],
    },
    status: { instanceNames: view.instanceNames ?? ["c-1", "c-2"], healthyPVC: view.healthyPVC ?? bothVolumes },
  };
  return planTablespaces({
    cluster,
    podName: "c-1",
    owners: new Map(Object.entries({ pg_default: "postgres", pg_global: "postgres", ...view.owners })),
    mounted: new Set(view.mounted ?? ["my_hot"]),
  });
}

describe("planTablespaces", () => {
  const noMount = "deferred until mount point is created";
  const noVolume = "deferred until all required PVCs are healthy";
  const initdb = { initdb: { database: "app", owner: "writer" } };
  const cases: [what: string, view: View, kind: TablespaceStep["kind"], owner: string, reason?: string][] = [
    ["a missing one is created", { wanted: { owner: { name: "o" } } }, "create", "o"],
    ["the application's owner by default", { bootstrap: initdb }, "create", "writer"],
    ["an empty owner is none", { bootstrap: initdb, wanted: { owner: { name: "" } } }, "create", "writer"],
    ["an equal one is left", { bootstrap: initdb, owners: { my_hot: "writer" } }, "keep", "writer"],
    ["another owner", { bootstrap: initdb, owners: { my_hot: "postgres" } }, "changeOwner", "writer"],
    [
      "one that exists waits for nothing",
      { bootstrap: initdb, owners: { my_hot: "postgres" }, mounted: [], healthyPVC: [] },
      "changeOwner",
      "writer",
    ],
    ["no mount in this pod", { bootstrap: initdb, mounted: ["other"] }, "defer", "writer", noMount],
    [
      "a volume of a standby is not healthy",
      { bootstrap: initdb, healthyPVC: bothVolumes.slice(0, 3) },
      "defer",
      "writer",
      noVolume,
    ],
    [
      "nothing is known of the instances",
      { bootstrap: initdb, instanceNames: [], healthyPVC: [] },
      "defer",
      "writer",
      noVolume,
    ],
    [
      "a name near to the reserved ones",
      { wanted: { name: "pgx" }, owners: { pgx: "app" } },
      "changeOwner",
      "postgres",
    ],
  ];
  test.each(cases)("%s", (_what, view, kind, owner, reason) => {
    const name = view.wanted?.name ?? "my_hot";
    const cluster = view.wanted?.name ? { bootstrap: { pg_basebackup: { source: "s" } }, ...view } : view;
    expect(plan(cluster)).toEqual([{ kind, name, owner, ...(reason ? { reason } : {}) }]);
  });
});

describe("tablespaceState", () => {
  const it = { name: "t", owner: "o" };
  test.each<[TablespaceStep, string | undefined, string, string?]>([
    [{ kind: "keep", ...it }, undefined, "reconciled"],
    [{ kind: "create", ...it }, undefined, "reconciled"],
    [{ kind: "create", ...it }, "no role", "pending", "while creating tablespace t: no role"],
    [{ kind: "changeOwner", ...it }, "no role", "pending", "while updating tablespace t: no role"],
    [{ kind: "defer", ...it, reason: "deferred" }, undefined, "pending", "deferred"],
  ])("%j %s", (step, failure, state, error) => {
    expect(tablespaceState(step, failure)).toEqual({ ...it, state, ...(error ? { error } : {}) });
  });
});
