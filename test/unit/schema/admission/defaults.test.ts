import { describe, expect, test } from "vitest";
import { defaultParameters } from "../../../../src/postgres/parameters.ts";
import { applyDefaults } from "../../../../src/schema/admission/index.ts";
import { aCluster, type ClusterParts, settings } from "./a-cluster.ts";

const preserve = (parts: ClusterParts, more: Partial<typeof settings> = {}) =>
  applyDefaults(aCluster(parts), { mode: "preserve", settings: { ...settings, ...more } });
const enforce = (parts: ClusterParts) => applyDefaults(aCluster(parts), { mode: "enforce", settings });

test("fills a plain cluster", () => {
  expect(preserve({}).spec).toEqual({
    instances: 3,
    storage: { size: "1Gi" },
    imageName: "registry.example/postgresql:18.4",
    bootstrap: {
      initdb: { database: "app", owner: "app", encoding: "UTF8", localeCollate: "C", localeCType: "C" },
    },
    affinity: { podAntiAffinityType: "preferred" },
    postgresql: { parameters: { ...defaultParameters, archive_mode: "on" } },
    logLevel: "info",
    replicationSlots: {
      highAvailability: { enabled: true, slotPrefix: "_cnpg_" },
      synchronizeReplicas: { enabled: true },
    },
    probes: { liveness: { isolationCheck: { enabled: true, requestTimeout: 1000, connectionTimeout: 1000 } } },
  });
});

test("leaves its argument alone", () => {
  const cluster = aCluster({
    spec: { bootstrap: { initdb: {} }, tablespaces: [{ name: "t", storage: { size: "1Gi" } }] },
  });
  const before = structuredClone(cluster);
  applyDefaults(cluster, { mode: "enforce", settings });
  expect(cluster).toEqual(before);
});

describe("image", () => {
  test("is not named beside a catalog", () => {
    const imageCatalogRef = { kind: "ImageCatalog", name: "c", major: 17 };
    expect(preserve({ spec: { imageCatalogRef } }).spec.imageName).toBeUndefined();
  });
});

describe("bootstrap", () => {
  test("names no database of a monolith import", () => {
    const section = { source: { externalCluster: "o" }, type: "monolith" as const, databases: ["*"] };
    const { initdb } = preserve({ spec: { bootstrap: { initdb: { import: section } } } }).spec.bootstrap ?? {};
    expect(initdb).toEqual({ import: section, encoding: "UTF8", localeCollate: "C", localeCType: "C" });
  });

  test("makes the database's name its owner", () => {
    expect(preserve({ spec: { bootstrap: { initdb: { database: "orders" } } } }).spec.bootstrap?.initdb?.owner).toBe(
      "orders",
    );
  });

  test.each(["recovery", "pg_basebackup"] as const)("fills %s and makes no initdb section", (method) => {
    const { bootstrap } = preserve({ spec: { bootstrap: { [method]: { source: "o" } } } }).spec;
    expect(bootstrap).toEqual({ [method]: { source: "o", database: "app", owner: "app" } });
  });
});

describe("affinity", () => {
  test("has no type when it is off", () => {
    const affinity = { enablePodAntiAffinity: false };
    expect(preserve({ spec: { affinity } }).spec.affinity).toEqual(affinity);
  });

  test("keeps the user's type", () => {
    expect(preserve({ spec: { affinity: { podAntiAffinityType: "required" } } }).spec.affinity).toEqual({
      podAntiAffinityType: "required",
    });
  });
});

describe("parameters", () => {
  test("of the user win over defaults", () => {
    const parameters = preserve({ spec: { postgresql: { parameters: { wal_level: "replica", work_mem: "8MB" } } } })
      .spec.postgresql?.parameters;
    expect(parameters).toMatchObject({ wal_level: "replica", work_mem: "8MB", wal_keep_size: "512MB" });
  });

  test("that are fixed stay for validation and go when they are enforced", () => {
    const parts = {
      spec: { postgresql: { parameters: { port: "6000", log_destination: "stderr", work_mem: "8MB" } } },
    };
    expect(preserve(parts).spec.postgresql?.parameters).toMatchObject({ port: "6000", log_destination: "stderr" });
    const enforced = enforce(parts).spec.postgresql?.parameters;
    expect(enforced).toMatchObject({ log_destination: "csvlog", work_mem: "8MB" });
    expect(enforced).not.toHaveProperty("port");
  });

  test("are left alone when the version is not known", () => {
    const spec = { imageName: "pg:stable", postgresql: { parameters: { work_mem: "8MB" } } };
    expect(preserve({ spec }).spec.postgresql?.parameters).toEqual({ work_mem: "8MB" });
  });

  test.each<[string, ClusterParts]>([
    ["on", {}],
    ["off", { annotations: { "cnpg.io/skipWalArchiving": "enabled" } }],
    ["always", { spec: { replica: { enabled: true, source: "o" } } }],
    ["always", { spec: { replica: { primary: "elsewhere", source: "o" } } }],
    ["on", { spec: { replica: { primary: "db", source: "o" } } }],
    ["on", { spec: { replica: { self: "x", primary: "x", source: "o" } } }],
    [
      "off",
      { annotations: { "cnpg.io/skipWalArchiving": "enabled" }, spec: { replica: { enabled: true, source: "o" } } },
    ],
  ])("archive_mode is %s", (mode, parts) => {
    const parameters = { archive_mode: "sometimes" };
    const given = { ...parts, spec: { ...parts.spec, postgresql: { parameters } } };
    expect(preserve(given).spec.postgresql?.parameters?.["archive_mode"]).toBe(mode);
  });
});

describe("default queries", () => {
  const entry = { name: "cnpg-default-monitoring", key: "queries" };
  const own = { name: "own", key: "q" };

  test("come first, once", () => {
    const once = preserve(
      { spec: { monitoring: { customQueriesConfigMap: [own] } } },
      { monitoringQueriesConfigMap: "default", monitoringQueriesSecret: "default" },
    );
    expect(once.spec.monitoring).toEqual({ customQueriesConfigMap: [entry, own], customQueriesSecret: [entry] });
    const again = preserve({ spec: once.spec }, { monitoringQueriesConfigMap: "default" });
    expect(again.spec.monitoring?.customQueriesConfigMap).toEqual([entry, own]);
  });

  test("stay away when they are off", () => {
    const monitoring = { disableDefaultQueries: true };
    expect(preserve({ spec: { monitoring } }, { monitoringQueriesConfigMap: "d" }).spec.monitoring).toEqual(monitoring);
  });
});

test("keeps what the user said about slots", () => {
  const highAvailability = { enabled: false, slotPrefix: "x_" };
  expect(
    preserve({ spec: { replicationSlots: { updateInterval: 5, highAvailability } } }).spec.replicationSlots,
  ).toEqual({
    updateInterval: 5,
    highAvailability,
    synchronizeReplicas: { enabled: true },
  });
});

test.each([
  ["clerk", { bootstrap: { initdb: { database: "orders", owner: "clerk" } } }],
  [
    "postgres",
    {
      bootstrap: {
        initdb: { import: { source: { externalCluster: "o" }, type: "monolith" as const, databases: ["*"] } },
      },
    },
  ],
])("gives a tablespace to %s", (owner, spec) => {
  const tablespaces = [
    { name: "a", storage: { size: "1Gi" } },
    { name: "b", owner: { name: "me" }, storage: { size: "1Gi" } },
  ];
  expect(preserve({ spec: { ...spec, tablespaces } }).spec.tablespaces?.map((entry) => entry.owner?.name)).toEqual([
    owner,
    "me",
  ]);
});

test("adds the operator's plugins to the user's", () => {
  const plugins = [{ name: "own", enabled: false }];
  expect(preserve({ spec: { plugins } }, { includePlugins: ["own", "extra"] as never }).spec.plugins).toEqual([
    { name: "own", enabled: false },
    { name: "extra", enabled: true },
  ]);
});

test.each<[object, string | undefined]>([
  [{ enabled: true, requestTimeout: 1000, connectionTimeout: 1000 }, undefined],
  [{ enabled: false, requestTimeout: 5, connectionTimeout: 1000 }, '{"enabled":false,"requestTimeout":5}'],
  [{ enabled: true, requestTimeout: 1000, connectionTimeout: 1000 }, "{}"],
  [{ enabled: true, requestTimeout: 1000, connectionTimeout: 1000 }, "nonsense"],
])("makes the isolation check %j of the annotation %s", (check, text) => {
  const annotations: Record<string, string> = text === undefined ? {} : { "alpha.cnpg.io/livenessPinger": text };
  expect(preserve({ annotations }).spec.probes?.liveness?.isolationCheck).toEqual(check);
});

test("takes durability, quorum and the backup target", () => {
  const given = preserve({
    annotations: { "alpha.cnpg.io/failoverQuorum": "t" },
    spec: { backup: {}, postgresql: { synchronous: { method: "any", number: 1 } } },
  });
  expect(given.spec.backup?.target).toBe("prefer-standby");
  expect(given.spec.postgresql?.synchronous).toMatchObject({ dataDurability: "required", failoverQuorum: true });
});
