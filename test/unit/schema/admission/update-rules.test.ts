import { describe, expect, test } from "vitest";
import { clusterUpdateWarnings, clusterWarnings } from "../../../../src/schema/admission/index.ts";
import { checkUpdate } from "../../../../src/schema/admission/update-rules.ts";
import { aCluster, type ClusterParts, type Spec, updateRefusals } from "./a-cluster.ts";

const of = (spec: Spec, status?: ClusterParts["status"]): ClusterParts => ({ spec, ...(status ? { status } : {}) });
const runs = (majorVersion: number) => ({ pgDataImageInfo: { image: `pg:${majorVersion}`, majorVersion } });
const tablespace = (name: string, size = "2Gi") => ({ name, storage: { size } });
const template = (size: string) => ({ pvcTemplate: { resources: { requests: { storage: size } } } });
const slots = (section: object): Spec => ({ replicationSlots: section });

const rows: [rule: string, previous: ClusterParts, next: ClusterParts, refusals: string[]][] = [
  ["nothing", of({}), of({}), []],
  ["a minor update", of({ imageName: "pg:17.1" }), of({ imageName: "pg:17.2" }, runs(17)), []],
  ["an upgrade", of({ imageName: "pg:17.1" }), of({ imageName: "pg:18.1" }, runs(17)), []],
  [
    "a downgrade",
    of({ imageName: "pg:17.1" }),
    of({ imageName: "pg:16.9" }, runs(17)),
    ['spec.imageName: Invalid value: "pg:16.9": can\'t downgrade from major 17 to 16'],
  ],
  [
    "a downgrade in a catalog",
    of({ imageCatalogRef: { kind: "ImageCatalog", name: "c", major: 17 } }),
    of({ imageCatalogRef: { kind: "ImageCatalog", name: "c", major: 16 } }, runs(17)),
    ["spec.imageCatalogRef.major: Invalid value: 16: can't downgrade from major 17 to 16"],
  ],
  [
    "an upgrade to an old version",
    of({ imageName: "pg:14.1" }),
    of({ imageName: "pg:15.1" }, runs(14)),
    ['spec.imageName: Invalid value: "pg:15.1": major upgrades are only supported to version 16 or higher'],
  ],
  [
    "image and parameters at once",
    of({ imageName: "pg:17.1" }),
    of({
      imageName: "pg:17.2",
      primaryUpdateMethod: "switchover",
      postgresql: { parameters: { work_mem: "8MB" } },
    }),
    [
      'spec.imageName: Invalid value: "pg:17.2": Can\'t change image name and configuration at the same time when `primaryUpdateMethod` is set to `switchover`. There are differences in PostgreSQL configuration parameters: {"work_mem":["","8MB"]}',
    ],
  ],
  [
    "image and parameters with restarts",
    of({ imageName: "pg:17.1" }),
    of({ imageName: "pg:17.2", primaryUpdateMethod: "restart", postgresql: { parameters: { work_mem: "8MB" } } }),
    [],
  ],
  [
    "growth",
    of({ storage: { size: "1Gi" }, walStorage: { size: "1Gi" } }),
    of({ storage: { size: "2Gi" }, walStorage: { size: "1024Mi" } }),
    [],
  ],
  [
    "shrinking",
    of({ storage: { size: "2Gi" }, walStorage: { size: "2Gi" }, tablespaces: [tablespace("a"), tablespace("b")] }),
    of({
      storage: { size: "1Gi" },
      walStorage: { size: "1Gi" },
      tablespaces: [tablespace("b", "1Gi"), tablespace("a")],
    }),
    [
      'spec.storage: Invalid value: "1Gi": can\'t shrink existing storage from 2Gi to 1Gi',
      'spec.walStorage: Invalid value: "1Gi": can\'t shrink existing storage from 2Gi to 1Gi',
      'spec.tablespaces[0]: Invalid value: "1Gi": can\'t shrink existing storage from 2Gi to 1Gi',
    ],
  ],
  [
    "growth in the template of a volume, also beside or instead of a size",
    of({
      storage: template("1Gi"),
      walStorage: template("1Gi"),
      tablespaces: [{ name: "a", storage: { size: "2Gi" } }],
    }),
    of({
      storage: template("2Gi"),
      walStorage: { size: "2Gi" },
      tablespaces: [{ name: "a", storage: template("2048Mi") }],
    }),
    [],
  ],
  [
    "shrinking in the template of a volume, also instead of a size",
    of({ storage: template("2Gi"), walStorage: { size: "2Gi" } }),
    of({ storage: template("1Gi"), walStorage: template("1Gi") }),
    [
      'spec.storage: Invalid value: "1Gi": can\'t shrink existing storage from 2Gi to 1Gi',
      'spec.walStorage: Invalid value: "1Gi": can\'t shrink existing storage from 2Gi to 1Gi',
    ],
  ],
  [
    "no WAL volume any more",
    of({ walStorage: { size: "2Gi" } }),
    of({}),
    ["spec.walStorage: Invalid value: null: walStorage cannot be disabled once configured"],
  ],
  ["a WAL volume from now on", of({}), of({ walStorage: { size: "2Gi" } }), []],
  [
    "no tablespaces any more",
    of({ tablespaces: [tablespace("a")] }),
    of({}),
    ["spec.tablespaces: Invalid value: null: tablespaces section cannot be deleted once created"],
  ],
  [
    "one tablespace less",
    of({ tablespaces: [tablespace("a"), tablespace("b")] }),
    of({ tablespaces: [tablespace("a"), tablespace("c")] }),
    ['spec.tablespaces[1]: Invalid value: "b": no tablespace can be deleted once created'],
  ],
  [
    "other users",
    of({ postgresUID: 26, postgresGID: 26 }),
    of({ postgresUID: 27, postgresGID: 28 }),
    [
      "spec.postgresGID: Invalid value: 28: GID is an immutable field in the spec",
      "spec.postgresUID: Invalid value: 27: UID is an immutable field in the spec",
    ],
  ],
  [
    "another slot prefix",
    of(slots({ highAvailability: { enabled: true, slotPrefix: "a_" } })),
    of(slots({ highAvailability: { enabled: true, slotPrefix: "b_" } })),
    [
      'spec.replicationSlots.highAvailability.slotPrefix: Invalid value: "b_": Cannot change replication slot prefix while highAvailability is enabled',
    ],
  ],
  [
    "another slot prefix while slots are off",
    of(slots({ highAvailability: { enabled: false, slotPrefix: "a_" } })),
    of(slots({ highAvailability: { enabled: true, slotPrefix: "b_" } })),
    [],
  ],
  [
    "minimal WAL",
    { annotations: { "cnpg.io/skipWalArchiving": "enabled" }, spec: { instances: 1 } },
    {
      annotations: { "cnpg.io/skipWalArchiving": "enabled" },
      spec: { instances: 1, postgresql: { parameters: { wal_level: "minimal", max_wal_senders: "0" } } },
    },
    [
      'spec.postgresql.parameters.wal_level: Invalid value: "minimal": Change of `wal_level` to `minimal` not allowed on an existing cluster (from logical)',
    ],
  ],
  [
    "a new role during a transition",
    of({
      externalClusters: [{ name: "o", connectionParameters: { host: "o" } }],
      bootstrap: { pg_basebackup: { source: "o" } },
      replica: { enabled: true, source: "o" },
    }),
    of(
      {
        externalClusters: [{ name: "o", connectionParameters: { host: "o" } }],
        bootstrap: { pg_basebackup: { source: "o" } },
        replica: { enabled: false, source: "o" },
      },
      { switchReplicaClusterStatus: { inProgress: true } },
    ),
    [
      "spec.replica.enabled: Forbidden: cannot modify the field while there is an ongoing operation to enable the replica cluster",
    ],
  ],
];

test.each(rows)("update: %s", (_change, previous, next, expected) => {
  expect(updateRefusals(previous, next)).toEqual(expected);
});

test("an update is checked as a creation is, too", () => {
  expect(updateRefusals({}, { spec: { imageName: "pg:latest" } })).toHaveLength(1);
});

describe("slot sections that vanish", () => {
  // Defaults would bring them back: this is what a caller without them sees.
  test("are refused while they are on", () => {
    const previous = aCluster({
      spec: { replicationSlots: { highAvailability: { enabled: true }, synchronizeReplicas: { enabled: true } } },
    });
    expect(
      checkUpdate(aCluster({ spec: { replicationSlots: {} } }), previous).map(({ path, message }) => [path, message]),
    ).toEqual([
      [
        "spec.replicationSlots.highAvailability",
        "Cannot remove spec.replicationSlots.highAvailability section while highAvailability is enabled",
      ],
      [
        "spec.replicationSlots.synchronizeReplicas",
        "Cannot remove spec.replicationSlots.synchronizeReplicas section while synchronizeReplicas is enabled. Disable synchronizeReplicas first to allow cleanup of user-defined replication slots on replicas",
      ],
    ]);
    expect(checkUpdate(aCluster({}), previous).map(({ path }) => path)).toEqual([
      "spec.replicationSlots",
      "spec.replicationSlots",
    ]);
  });
});

const warningRows: [subject: string, parts: ClusterParts, warning: RegExp][] = [
  ["maintenance", of({ nodeMaintenanceWindow: { inProgress: true } }), /nodeMaintenanceWindow is deprecated/],
  [
    "the in-tree store",
    of({ backup: { barmanObjectStore: { destinationPath: "s3://b" } } }),
    /announced to be removed in 1\.31\.0/,
  ],
  [
    "the in-tree store of a source",
    of({ externalClusters: [{ name: "o", barmanObjectStore: { destinationPath: "s3://b" } }] }),
    /announced to be removed in 1\.31\.0/,
  ],
  ["retention without a store", of({ backup: { retentionPolicy: "1d" } }), /retentionPolicy has no effect/],
  [
    "two classes",
    of({ storage: { size: "1Gi", storageClass: "a", pvcTemplate: { storageClassName: "b" } } }),
    /spec\.storage\.storageClass and/,
  ],
  [
    "two sizes",
    of({ walStorage: { size: "1Gi", pvcTemplate: { resources: { requests: { storage: "2Gi" } } } } }),
    /spec\.walStorage\.size and/,
  ],
  [
    "buffers without a unit",
    of({ postgresql: { parameters: { shared_buffers: "128" } } }),
    /128 as a number of 8 kB pages/,
  ],
  [
    "archive mode",
    of({ postgresql: { parameters: { archive_mode: "off" } } }),
    /archive_mode is set by the operator: "off" is replaced by "on"/,
  ],
  ["no caching of queries", of({ monitoring: { metricsQueriesTTL: "0s" } }), /every scrape runs every query/],
  ["a PodMonitor", of({ monitoring: { enablePodMonitor: true } }), /enablePodMonitor is deprecated/],
  [
    "relabelings",
    of({ monitoring: { podMonitorRelabelings: [{ action: "drop" }] } }),
    /podMonitorRelabelings is deprecated/,
  ],
  [
    "an owner with two passwords",
    of({
      bootstrap: { initdb: { database: "shop", owner: "anna" } },
      managed: { roles: [{ name: "anna", passwordSecret: { name: "anna-pw" } }] },
    }),
    /gives anna, who owns the application's database, Secret anna-pw: Secret \S+-app is not applied/,
  ],
  [
    "a default owner without a password",
    of({ managed: { roles: [{ name: "app", disablePassword: true }] } }),
    /gives app, who owns the application's database, no password/,
  ],
  ["validation turned off", { annotations: { "cnpg.io/validation": "disabled" } }, /validation is disabled/],
  ["a word that validation does not know", { annotations: { "cnpg.io/validation": "off" } }, /unknown value "off"/],
];

test.each(warningRows)("warns of %s", (_subject, parts, warning) => {
  expect(clusterWarnings(aCluster(parts))).toEqual([expect.stringMatching(warning)]);
});

test("warns of nothing when there is nothing", () => {
  const owner = { bootstrap: { initdb: { database: "shop", owner: "anna", secret: { name: "anna-pw" } } } };
  const roles = [
    { name: "anna", passwordSecret: { name: "anna-pw" } },
    { name: "app", disablePassword: true },
  ];
  expect(clusterWarnings(aCluster(of({ ...owner, managed: { roles } })))).toEqual([]);
  expect(clusterWarnings(aCluster({ annotations: { "cnpg.io/validation": "enabled" } }))).toEqual([]);
});

test("warns of a bootstrap that changes too late", () => {
  const before = aCluster({ spec: { bootstrap: { initdb: { database: "a" } } } });
  const after = aCluster({ spec: { bootstrap: { initdb: { database: "b" } } } });
  expect(clusterUpdateWarnings(after, before)).toEqual([expect.stringMatching(/no effect on a cluster that exists/)]);
  expect(clusterUpdateWarnings(before, before)).toEqual([]);
});
