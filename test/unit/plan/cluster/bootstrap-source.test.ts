import { describe, expect, it, test } from "vitest";
import type { Backup } from "../../../../src/api/generated/backup.ts";
import type { Cluster } from "../../../../src/api/generated/cluster.ts";
import { phases } from "../../../../src/api/phases.ts";
import { chooseBootstrapSource } from "../../../../src/plan/cluster/bootstrap-source.ts";
import { planCluster } from "../../../../src/plan/cluster/plan-cluster.ts";
import { aCluster, aSettledObservation, now, stepsOf, volumesOf } from "./fixtures.ts";

type Bootstrap = NonNullable<Cluster["spec"]["bootstrap"]>;

const external = {
  name: "origin",
  barmanObjectStore: { destinationPath: "s3://b/", endpointCA: { name: "external-ca", key: "ca.crt" } },
} as NonNullable<Cluster["spec"]["externalClusters"]>[number];
const application = { database: "app", owner: "app" };
const recovering = (recovery: Partial<NonNullable<Bootstrap["recovery"]>>) =>
  aCluster({
    bootstrap: { recovery: { ...application, ...recovery } },
    externalClusters: [external],
    walStorage: { size: "1Gi" },
  });

function aBackup(status: Backup["status"]): Backup {
  return {
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Backup",
    metadata: { name: "b", namespace: "ns" },
    spec: { cluster: { name: "other" } },
    status: status ?? {},
  };
}

const backups = (status?: Backup["status"]) => new Map(status ? [["b", aBackup(status)]] : []);
const elements = [
  { name: "s-data", type: "PG_DATA" },
  { name: "s-wal", type: "PG_WAL" },
];
const snapshot = (name: string, role: string, backupName = "b") => ({
  metadata: {
    name,
    labels: { "cnpg.io/pvcRole": role, "cnpg.io/backupName": backupName },
    annotations: { "cnpg.io/backupLabelFile": "bGFiZWw=" },
  },
});
const both = new Map([
  ["s-data", snapshot("s-data", "PG_DATA")],
  ["s-wal", snapshot("s-wal", "PG_WAL")],
]);

describe("where a first primary's data comes from", () => {
  test("an object store's authority is the recovery's own, else the Backup's, else the source's", () => {
    const completed = { phase: "completed", method: "barmanObjectStore", azureCredentials: {} };
    const own = { name: "own-ca", key: "k" };
    const cases = [
      [recovering({ source: "origin" }), backups(), { secretName: "external-ca", key: "ca.crt", provider: "s3" }],
      [
        recovering({ backup: { name: "b" } }),
        backups({ ...completed, endpointCA: { name: "b-ca", key: "c" } }),
        { secretName: "b-ca", key: "c", provider: "azure" },
      ],
      [
        recovering({ backup: { name: "b", endpointCA: own } }),
        backups({ phase: "completed" }),
        { secretName: "own-ca", key: "k", provider: "s3" },
      ],
      [recovering({ backup: { name: "b" } }), backups({ phase: "completed" }), undefined],
    ] as const;
    for (const [cluster, known, endpointCa] of cases) {
      expect(chooseBootstrapSource(cluster, { backups: known })).toEqual({ kind: "archive", endpointCa });
    }
  });

  test.each([
    ["no Backup", recovering({ backup: { name: "b" } }), backups(), 'Backup object "ns/b" is missing', "ErrorNoBackup"],
    [
      "one that runs",
      recovering({ backup: { name: "b" } }),
      backups({ phase: "running" }),
      "is not completed",
      "ErrorNoBackup",
    ],
    [
      "a plugin's",
      recovering({ backup: { name: "b" } }),
      backups({ phase: "completed", method: "plugin", backupId: "x1" }),
      "x1",
      "InvalidBootstrap",
    ],
    [
      "no source",
      recovering({ source: "nobody" }),
      backups(),
      '"nobody" is not among spec.externalClusters',
      "InvalidBootstrap",
    ],
    ["nothing", recovering({}), backups(), "names nothing to recover from", "InvalidBootstrap"],
  ])("waits a minute for %s", (_name, cluster, known, text, event) => {
    const source = chooseBootstrapSource(cluster, { backups: known });
    expect(source).toMatchObject({ kind: "blocked", requeueAfterMs: 60_000, event });
    expect(source).toHaveProperty("because", expect.stringContaining(text));
  });

  it("takes the snapshots of a Backup, with the label that the data's carries", () => {
    const known = backups({ phase: "completed", method: "volumeSnapshot", snapshotBackupStatus: { elements } });
    const reference = (name: string) => ({ apiGroup: "snapshot.storage.k8s.io", kind: "VolumeSnapshot", name });
    const cluster = recovering({ backup: { name: "b" } });
    expect(chooseBootstrapSource(cluster, { backups: known, recoverySnapshots: both })).toEqual({
      kind: "snapshots",
      sources: { data: reference("s-data"), wal: reference("s-wal") },
      backupLabel: "bGFiZWw=",
      tablespaceMap: undefined,
      endpointCa: undefined,
    });
    const mixed = new Map([...both, ["s-wal", snapshot("s-wal", "PG_WAL", "other")] as const]);
    const swapped = new Map([...both, ["s-wal", snapshot("s-wal", "PG_DATA")] as const]);
    for (const recoverySnapshots of [mixed, swapped, new Map()]) {
      expect(chooseBootstrapSource(cluster, { backups: known, recoverySnapshots })).toMatchObject({
        kind: "blocked",
        requeueAfterMs: 5_000,
        event: "InvalidVolumeSnapshot",
      });
    }
  });
});

describe("the pass that makes the first primary", () => {
  const jobOf = (cluster: Cluster, fields: Parameters<typeof aSettledObservation>[1] = {}) => {
    const { actions, status } = planCluster(cluster, aSettledObservation(cluster, fields), now);
    const creations = actions.flatMap((it) => (it.kind === "create" ? [it.object] : []));
    return { actions, status, job: creations.find((it) => it.kind === "Job"), creations };
  };

  test.each([
    ["c-1-full-recovery", "from backup", recovering({ source: "origin" })],
    [
      "c-1-pgbasebackup",
      "from physical backup",
      aCluster({ bootstrap: { pg_basebackup: { source: "origin", ...application } }, externalClusters: [external] }),
    ],
  ])("creates %s and says %s", (name, origin, cluster) => {
    const { job, actions } = jobOf(cluster);
    expect(job?.metadata.name).toBe(name);
    expect(actions).toContainEqual(expect.objectContaining({ kind: "event", message: `Primary instance (${origin})` }));
  });

  it("tells what it waits for, once", () => {
    const cluster = recovering({ backup: { name: "b" } });
    const first = jobOf(cluster);
    expect(first.job).toBeUndefined();
    expect(first.status).toMatchObject({
      phase: phases.settingUpPrimary,
      phaseReason: 'Backup object "ns/b" is missing',
    });
    expect(stepsOf(first.actions)).toContain("event ErrorNoBackup");
    const again = jobOf({ ...cluster, status: first.status });
    expect(stepsOf(again.actions)).not.toContain("event ErrorNoBackup");
  });

  it("fills the volumes from snapshots, also when it was cut short between them", () => {
    const cluster = recovering({ backup: { name: "b" } });
    const known = {
      backups: backups({ phase: "completed", method: "volumeSnapshot", snapshotBackupStatus: { elements } }),
      recoverySnapshots: both,
    };
    const sourceOf = (creations: readonly object[], name: string) =>
      creations.find((it) => (it as { metadata: { name: string } }).metadata.name === name);
    const wal = { spec: { dataSource: { kind: "VolumeSnapshot", name: "s-wal" } } };
    const whole = jobOf(cluster, known);
    expect(whole.job?.metadata.name).toBe("c-1-snapshot-recovery");
    expect(sourceOf(whole.creations, "c-1-wal")).toMatchObject(wal);
    const half = { ...cluster, status: { targetPrimary: "c-1", instanceNames: ["c-1"] } };
    const [data] = volumesOf(half, 1, "initializing");
    const rest = jobOf(half, { ...known, volumes: data ? [data] : [] });
    expect(sourceOf(rest.creations, "c-1-wal")).toMatchObject(wal);
    expect(rest.job?.metadata.name).toBe("c-1-snapshot-recovery");
  });
});
