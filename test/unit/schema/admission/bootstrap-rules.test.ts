import { describe, expect, test } from "vitest";
import { type ClusterParts, refusals, type Spec } from "./a-cluster.ts";

const origin = { name: "origin", connectionParameters: { host: "origin" } };
const imports = (section: object): Spec => ({
  externalClusters: [origin],
  bootstrap: {
    initdb: {
      import: { source: { externalCluster: "origin" }, type: "microservice", databases: ["a"], ...section } as never,
    },
  },
});
const initdb = (section: object): Spec => ({ bootstrap: { initdb: section } });

const rows: [rule: string, good: Spec, bad: Spec, refusal: string][] = [
  [
    "one method",
    { bootstrap: { initdb: {} } },
    {
      externalClusters: [origin],
      bootstrap: { initdb: { database: "a", owner: "a" }, pg_basebackup: { source: "origin" } },
    },
    "spec.bootstrap: Forbidden: Only one bootstrap method can be specified at a time",
  ],
  [
    "owner with database",
    imports({ type: "monolith", databases: ["*"] }),
    {
      ...imports({}),
      bootstrap: {
        initdb: {
          owner: "me",
          import: { source: { externalCluster: "origin" }, type: "monolith", databases: ["*"] },
        },
      },
    },
    'spec.bootstrap.initdb.database: Invalid value: "": You need to specify the database name',
  ],
  [
    "WAL segment size",
    initdb({ walSegmentSize: 64 }),
    initdb({ walSegmentSize: 48 }),
    "spec.bootstrap.initdb.walSegmentSize: Invalid value: 48: WAL segment size must be a power of 2",
  ],
  ...(["postInitApplicationSQLRefs", "postInitTemplateSQLRefs", "postInitSQLRefs"] as const).map(
    (field): [string, Spec, Spec, string] => [
      field,
      initdb({ [field]: { secretRefs: [{ name: "a", key: "b" }] } }),
      initdb({ [field]: { configMapRefs: [{ name: "a", key: "" }] } }),
      `spec.bootstrap.initdb.${field}.configMapRefs: Invalid value: {"name":"a","key":""}: key and name must be specified`,
    ],
  ),
  [
    "import source",
    imports({}),
    imports({ source: { externalCluster: "elsewhere" } }),
    'spec.bootstrap.initdb.import.source.externalCluster: Invalid value: "elsewhere": External cluster elsewhere not found',
  ],
  [
    "import type",
    imports({}),
    imports({ type: "both" }),
    'spec.bootstrap.initdb.import.type: Invalid value: "both": Unrecognized import type',
  ],
  [
    "one database for microservice",
    imports({}),
    imports({ databases: ["a", "b"] }),
    'spec.bootstrap.initdb.import.databases: Invalid value: ["a","b"]: You need to specify a single database for the `microservice` import type',
  ],
  [
    "no roles for microservice",
    imports({ roles: [] }),
    imports({ roles: ["r"] }),
    'spec.bootstrap.initdb.import.roles: Invalid value: ["r"]: You cannot specify roles to import for the `microservice` import type',
  ],
  [
    "no wildcard for microservice",
    imports({}),
    imports({ databases: ["*"] }),
    'spec.bootstrap.initdb.import.databases.0: Invalid value: "*": You cannot specify any wildcard for the `microservice` import type',
  ],
  [
    "a database for monolith",
    imports({ type: "monolith", databases: ["*"] }),
    imports({ type: "monolith", databases: [] }),
    "spec.bootstrap.initdb.import.databases: Invalid value: []: You need to specify at least a database for the `monolith` import type",
  ],
  [
    "wildcard databases alone",
    imports({ type: "monolith", databases: ["*"] }),
    imports({ type: "monolith", databases: ["a", "*"] }),
    'spec.bootstrap.initdb.import.databases: Invalid value: ["a","*"]: Wildcard import cannot be used along other database names',
  ],
  [
    "wildcard roles alone",
    imports({ type: "monolith", databases: ["*"], roles: ["*"] }),
    imports({ type: "monolith", databases: ["*"], roles: ["r", "*"] }),
    'spec.bootstrap.initdb.import.roles: Invalid value: ["r","*"]: Wildcard import cannot be used along other role names',
  ],
  [
    "no SQL after monolith",
    imports({ postImportApplicationSQL: ["SELECT 1"] }),
    imports({ type: "monolith", databases: ["*"], postImportApplicationSQL: ["SELECT 1"] }),
    'spec.bootstrap.initdb.import.postImportApplicationSQL: Invalid value: ["SELECT 1"]: postImportApplicationSQL is not allowed for the `monolith` import type',
  ],
];

describe.each(rows)("bootstrap: %s", (_rule, good, bad, refusal) => {
  test("accepts", () => expect(refusals({ spec: good })).toEqual([]));
  test("refuses", () => expect(refusals({ spec: bad })).toEqual([refusal]));
});

const snapshot = { name: "s", kind: "VolumeSnapshot", apiGroup: "snapshot.storage.k8s.io" };
const recovery = (section: object, more: Spec = {}): ClusterParts => ({
  spec: { externalClusters: [origin], bootstrap: { recovery: { source: "origin", ...section } }, ...more },
});
const target = (recoveryTarget: object) => recovery({ recoveryTarget });
const path = "spec.bootstrap.recovery.recoveryTarget";

const recoveryRows: [rule: string, good: ClusterParts, bad: ClusterParts, refusals: string[]][] = [
  [
    "base backup source",
    { spec: { externalClusters: [origin], bootstrap: { pg_basebackup: { source: "origin" } } } },
    { spec: { bootstrap: { pg_basebackup: { source: "origin" } } } },
    ['spec.bootstrap.pg_basebackup.source: Invalid value: "origin": External cluster origin not found'],
  ],
  [
    "recovery source",
    recovery({}),
    recovery({ source: "x" }),
    ['spec.bootstrap.recovery.source: Invalid value: "x": External cluster x not found'],
  ],
  [
    "usable recovery source",
    recovery({}),
    { spec: { externalClusters: [{ name: "origin" }], bootstrap: { recovery: { source: "origin" } } } },
    [
      'spec.bootstrap.recovery.source: Invalid value: "origin": External cluster origin cannot be used for recovery: missing connection parameters, Barman, or CNPG-i configuration',
      "spec.externalClusters[0]: Required value: one of connectionParameters, plugin and barmanObjectStore is required",
    ],
  ],
  [
    "exclusive targets",
    target({ targetLSN: "0/1" }),
    target({ targetLSN: "0/1", targetTime: "2026-11-30 10:00:00+00" }),
    [
      `${path}: Invalid value: {"targetLSN":"0/1","targetTime":"2026-11-30 10:00:00+00"}: Recovery target options are mutually exclusive`,
    ],
  ],
  [
    "target time",
    target({ targetTime: "2026-11-30T10:00:00.5Z" }),
    target({ targetTime: "2026-02-30 10:00:00" }),
    [`${path}: Invalid value: "2026-02-30 10:00:00": The format of TargetTime is invalid`],
  ],
  [
    "target LSN",
    target({ targetLSN: "1/ABCDEF" }),
    target({ targetLSN: "x/1" }),
    [`${path}: Invalid value: "x/1": Invalid TargetLSN`],
  ],
  [
    "backup for a name",
    target({ targetName: "p", backupID: "20261130T000000" }),
    target({ targetName: "p" }),
    [`${path}: Required value: BackupID is missing`],
  ],
  [
    "no backup needed with snapshots",
    {
      spec: {
        bootstrap: { recovery: { volumeSnapshots: { storage: snapshot }, recoveryTarget: { targetName: "p" } } },
      },
    },
    target({ targetImmediate: true }),
    [`${path}: Required value: BackupID is missing`],
  ],
  [
    "transaction id",
    target({ targetXID: "4294967295", backupID: "b" }),
    target({ targetXID: "4294967296", backupID: "b" }),
    [`${path}.targetXID: Invalid value: "4294967296": recovery target xid must be a non-negative 32-bit integer`],
  ],
  [
    "name length",
    target({ targetName: "n".repeat(63), backupID: "b" }),
    target({ targetName: "n".repeat(64), backupID: "b" }),
    [`${path}.targetName: Invalid value: "${"n".repeat(64)}": recovery target name must be shorter than 64 bytes`],
  ],
  [
    "name characters",
    target({ targetName: "é", backupID: "b" }),
    target({ targetName: "a\tb", backupID: "b" }),
    [`${path}.targetName: Invalid value: "a\\tb": recovery target name must not contain ASCII control characters`],
  ],
  [
    "timeline",
    target({ targetTLI: "latest" }),
    target({ targetTLI: "0" }),
    [`${path}.targetTLI: Invalid value: "0": recovery target timeline can be set to 'latest' or a positive integer`],
  ],
  [
    "snapshots alone",
    { spec: { bootstrap: { recovery: { volumeSnapshots: { storage: snapshot } } } } },
    { spec: { bootstrap: { recovery: { backup: { name: "b" }, volumeSnapshots: { storage: snapshot } } } } },
    [
      'spec.bootstrap.recovery.backup: Invalid value: "b": Recovery from dataSource is not compatible with other types of recovery',
    ],
  ],
  [
    "no backup id with snapshots",
    { spec: { bootstrap: { recovery: { volumeSnapshots: { storage: snapshot } } } } },
    {
      spec: { bootstrap: { recovery: { volumeSnapshots: { storage: snapshot }, recoveryTarget: { backupID: "b" } } } },
    },
    [`${path}.backupID: Invalid value: "b": Cannot specify a backupID when recovering using a DataSource`],
  ],
  [
    "kind of volume source",
    {
      spec: { bootstrap: { recovery: { volumeSnapshots: { storage: { kind: "PersistentVolumeClaim", name: "p" } } } } },
    },
    { spec: { bootstrap: { recovery: { volumeSnapshots: { storage: { kind: "VolumeSnapshot", name: "s" } } } } } },
    [
      'spec.bootstrap.recovery.storage: Invalid value: {"kind":"VolumeSnapshot","name":"s"}: Only VolumeSnapshots and PersistentVolumeClaims are supported',
    ],
  ],
  [
    "WAL volume for a WAL source",
    {
      spec: {
        walStorage: { size: "1Gi" },
        bootstrap: { recovery: { volumeSnapshots: { storage: snapshot, walStorage: snapshot } } },
      },
    },
    { spec: { bootstrap: { recovery: { volumeSnapshots: { storage: snapshot, walStorage: snapshot } } } } },
    [
      `spec.bootstrap.recovery.dataSource.walStorage: Invalid value: ${JSON.stringify(snapshot)}: A WAL storage configuration is required when recovering using a DataSource for WALs`,
    ],
  ],
];

describe.each(recoveryRows)("recovery: %s", (_rule, good, bad, expected) => {
  test("accepts", () => expect(refusals(good)).toEqual([]));
  test("refuses", () => expect(refusals(bad)).toEqual(expected));
});

test.each([
  "2026-11-30 10:00:00",
  "2026-11-30 10:00:00.123456",
  "2026-11-30 10:00:00+00",
  "2026-11-30 10:00:00.5-05:30",
  "2026-11-30T10:00:00Z",
  "2026-11-30T10:00:00",
  "2024-02-29T23:59:59+02:00",
])("takes the time stamp %s", (targetTime) => {
  expect(refusals(target({ targetTime }))).toEqual([]);
});

test.each([
  "now",
  "2026-13-01 00:00:00",
  "2023-02-29 00:00:00",
  "2026-11-30",
  "2026-11-30 24:00:00",
  "30.11.2026 10:00",
])("refuses the time stamp %s", (targetTime) => {
  expect(refusals(target({ targetTime }))).toHaveLength(1);
});
