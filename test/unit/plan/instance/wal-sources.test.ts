import { describe, expect, test } from "vitest";
import type { Cluster } from "../../../../src/api/generated/cluster.ts";
import {
  checkReplicaArchive,
  chooseArchiver,
  chooseInTreeSource,
  describeEndpoint,
  restorePlugins,
} from "../../../../src/plan/instance/wal-sources.ts";

const store = { destinationPath: "s3://b/" };

function cluster(spec: Partial<Cluster["spec"]>, status: Cluster["status"] = {}): Cluster {
  return { metadata: { name: "c" }, spec, status } as Cluster;
}

const can = (name: string, ...walCapabilities: string[]) => ({
  pluginStatus: [{ name, version: "1", capabilities: ["TYPE_WAL_SERVICE"], walCapabilities }],
});

test("a plugin that serves WAL by its sidecars only is asked, whatever its part beside the operator can do", () => {
  const capabilities = ["TYPE_RECONCILER_HOOKS", "TYPE_INSTANCE_SIDECAR_INJECTION"];
  const plugins = [{ name: "p", isWALArchiver: true }];
  const given = { ...cluster({ plugins }), status: { pluginStatus: [{ name: "p", version: "1", capabilities }] } };
  expect(restorePlugins(given)).toEqual([{ name: "p", required: true }]);
  expect(chooseArchiver({ ...given, spec: { ...given.spec, plugins: [{ name: "p" }] } })).toEqual({
    kind: "perhaps",
    plugins: ["p"],
  });
});

describe("archiver", () => {
  test.each<[string, Cluster, object]>([
    ["nobody", cluster({}), { kind: "none" }],
    ["the store", cluster({ backup: { barmanObjectStore: store } }), { kind: "objectStore" }],
    [
      "the marked plugin alone",
      cluster({ plugins: [{ name: "p" }, { name: "q", isWALArchiver: true }] }),
      { kind: "plugin", plugin: "q" },
    ],
    [
      "a disabled plugin is none",
      cluster({ plugins: [{ name: "q", isWALArchiver: true, enabled: false }] }),
      { kind: "none" },
    ],
    ["a plugin of which nothing is known", cluster({ plugins: [{ name: "p" }] }), { kind: "perhaps", plugins: ["p"] }],
    [
      "a plugin that archives though it is not marked",
      cluster({ plugins: [{ name: "p" }] }, can("p", "TYPE_ARCHIVE_WAL")),
      { kind: "perhaps", plugins: ["p"] },
    ],
    ["a plugin that does not archive", cluster({ plugins: [{ name: "p" }] }, can("p")), { kind: "none" }],
    [
      "a store before unmarked plugins",
      cluster({ plugins: [{ name: "p" }], backup: { barmanObjectStore: store } }),
      { kind: "objectStore" },
    ],
  ])("%s", (_name, given, expected) => {
    expect(chooseArchiver(given)).toEqual(expected);
  });
});

test.each<[string, Partial<typeof store> & { serverName?: string }, boolean, boolean]>([
  ["the very archive", { serverName: "c" }, true, true],
  ["it in another spelling", { serverName: "c", destinationPath: "s3://b" }, true, true],
  ["another server in it", {}, true, false],
  ["another folder", { serverName: "c", destinationPath: "s3://b/deep" }, true, false],
  ["what it followed once", { serverName: "c" }, false, false],
])("a replica cluster does not archive into the archive it follows: %s", (_name, fields, enabled, isMixed) => {
  const given = cluster({
    backup: { barmanObjectStore: store },
    replica: { source: "a", enabled },
    externalClusters: [{ name: "a", barmanObjectStore: { ...store, ...fields } }],
  });
  expect(checkReplicaArchive(given)).toEqual(isMixed ? expect.stringContaining('spec.replica.source "a"') : null);
});

describe("plugins to restore from", () => {
  test.each<[string, Cluster, object]>([
    ["none", cluster({}), []],
    [
      "the archiver's answer counts",
      cluster({ plugins: [{ name: "p", isWALArchiver: true }] }),
      [{ name: "p", required: true }],
    ],
    [
      "an unknown plugin is asked if it is there",
      cluster({ plugins: [{ name: "p" }] }),
      [{ name: "p", required: false }],
    ],
    ["one that can't is not", cluster({ plugins: [{ name: "p" }] }, can("p", "TYPE_ARCHIVE_WAL")), []],
    [
      "external clusters, each plugin once, by name",
      cluster({
        plugins: [{ name: "q" }],
        bootstrap: { recovery: { source: "from" } },
        externalClusters: [
          { name: "from", plugin: { name: "q" } },
          { name: "other", plugin: { name: "a" } },
          { name: "off", plugin: { name: "b", enabled: false } },
        ],
      }),
      [
        { name: "a", required: false },
        { name: "q", required: true },
      ],
    ],
  ])("%s", (_name, given, expected) => {
    expect(restorePlugins(given)).toEqual(expected);
  });
});

describe("in-tree source", () => {
  const external = { name: "src", barmanObjectStore: store };
  const replica = { replica: { enabled: true, source: "src" }, externalClusters: [external] };

  test("a standby reads the own archive, under the cluster's name, and may stream", () => {
    const given = cluster({ backup: { barmanObjectStore: store } }, { currentPrimary: "c-2" });
    expect(chooseInTreeSource(given, "c-1")).toMatchObject({
      kind: "archive",
      archive: { serverName: "c", field: "spec.backup.barmanObjectStore" },
      streamingAvailable: true,
    });
  });

  test("the primary has nobody to stream from", () => {
    const given = cluster({ backup: { barmanObjectStore: { ...store, serverName: "s" } } }, { currentPrimary: "c-1" });
    expect(chooseInTreeSource(given, "c-1")).toMatchObject({
      archive: { serverName: "s" },
      streamingAvailable: false,
    });
  });

  test("a designated primary reads its source, under the external cluster's name", () => {
    expect(chooseInTreeSource(cluster(replica, { currentPrimary: "c-1" }), "c-1")).toMatchObject({
      archive: { serverName: "src" },
      streamingAvailable: false,
    });
    const streaming = cluster(
      { ...replica, externalClusters: [{ ...external, connectionParameters: { host: "h" } }] },
      { currentPrimary: "c-1" },
    );
    expect(chooseInTreeSource(streaming, "c-1")).toMatchObject({ streamingAvailable: true });
  });

  test("its other instances read the own archive, or nothing", () => {
    expect(chooseInTreeSource(cluster(replica, { currentPrimary: "c-2" }), "c-1")).toEqual({ kind: "none" });
  });

  test("a source that is not there is told, not taken for an empty archive", () => {
    const given = cluster({ replica: { enabled: true, source: "gone" } }, { currentPrimary: "c-1" });
    expect(chooseInTreeSource(given, "c-1")).toEqual({
      kind: "invalid",
      reason: 'spec.replica.source "gone" is not among spec.externalClusters; add it there',
    });
  });

  test("before there is a primary the bootstrap's source is read", () => {
    const given = cluster({ bootstrap: { recovery: { source: "src" } }, externalClusters: [external] });
    expect(chooseInTreeSource(given, "c-1")).toMatchObject({
      archive: { serverName: "src" },
      streamingAvailable: false,
    });
  });
});

test("an archive that a Backup describes is spoken to as the Cluster speaks to the same endpoint", () => {
  const wal = { archiveAdditionalCommandArgs: ["--addressing-style=virtual"] };
  const data = { additionalCommandArgs: ["--read-timeout=60"] };
  const far = { ...store, endpointURL: "https://far", wal, data };
  const own = cluster({ backup: { barmanObjectStore: far } });
  expect(describeEndpoint(own, "https://far")).toEqual({ wal, data });
  expect(describeEndpoint(own, "https://near")).toEqual({});
  expect(describeEndpoint(own, undefined)).toEqual({});
  const other = cluster({
    backup: { barmanObjectStore: store },
    externalClusters: [{ name: "plain" }, { name: "far", barmanObjectStore: far }],
  });
  expect(describeEndpoint(other, "https://far")).toEqual({ wal, data });
  expect(describeEndpoint(other, "")).toEqual({});
  expect(describeEndpoint(cluster({}), "https://far")).toEqual({});
});
