import { describe, expect, test } from "vitest";
import type { Cluster } from "../../../../src/api/generated/cluster.ts";
import {
  checkExternalStore,
  checkOwnStore,
  checkRecoveryArchive,
  checkReplicaArchive,
  readClusterStores,
  storeNames,
  warnAboutStores,
} from "../../../../src/plugin/barman-cloud/cluster-stores.ts";
import { chooseRestoreSource } from "../../../../src/plugin/barman-cloud/restore-source.ts";
import { anArchivedCluster, anExternalStore, barmanPlugin } from "../../../support/barman-cloud-objects.ts";

const recovering = anArchivedCluster({
  bootstrap: { recovery: { source: "old" } },
  replica: { source: "upstream", enabled: false },
  externalClusters: [
    anExternalStore("old", { barmanObjectName: "depot", serverName: "ledger" }),
    { ...anExternalStore("upstream", { barmanObjectName: "depot" }), connectionParameters: { host: "far" } },
  ],
});

describe("the archives of a Cluster", () => {
  test("are read from the plugin's entry, the recovery source and the replica source", () => {
    const stores = readClusterStores(recovering);
    expect(stores).toEqual({
      namespace: "shop",
      own: { objectStore: "own", serverName: "orders" },
      recovery: { objectStore: "depot", serverName: "ledger" },
      replicaSource: { objectStore: "depot", serverName: "orders" },
    });
    expect(storeNames(stores)).toEqual(["own", "depot"]);
  });

  const entry = (fields: object) => anArchivedCluster({ plugins: [{ name: barmanPlugin, ...fields }] });
  test.each([
    ["a serverName counts", { parameters: { barmanObjectName: "own", serverName: "a" } }, "a"],
    ["an empty one is none", { parameters: { barmanObjectName: "own", serverName: "" } }, "orders"],
    [
      "a disabled entry's does not",
      { enabled: false, parameters: { barmanObjectName: "own", serverName: "a" } },
      "orders",
    ],
  ])("%s", (_, fields, serverName) => {
    expect(readClusterStores(entry(fields)).own).toEqual({ objectStore: "own", serverName });
  });

  test("another plugin's entries name none", () => {
    const other = anArchivedCluster({
      plugins: [{ name: "other.example.com", parameters: { barmanObjectName: "own" } }],
      bootstrap: { recovery: { source: "old" } },
      externalClusters: [{ name: "old", plugin: { name: "other.example.com", parameters: { barmanObjectName: "x" } } }],
    });
    expect(storeNames(readClusterStores(other))).toEqual([]);
  });

  test("a missing or misspelt parameter is named", () => {
    expect(checkOwnStore(entry({ parameters: {} }))).toMatch(/plugins\[0\].*barmanObjectName/);
    expect(checkOwnStore(entry({ enabled: false, parameters: {} }))).toBeNull();
    const misspelt = anArchivedCluster({ externalClusters: [anExternalStore("old", { objectName: "depot" })] });
    expect(checkExternalStore(misspelt, "old")).toMatch(
      /old: plugin.parameters has no barmanObjectName; given are objectName/,
    );
    expect(checkExternalStore(recovering, "old")).toBeNull();
  });

  test("an entry that is disabled and used all the same gets a word of warning", () => {
    expect(warnAboutStores(entry({ enabled: false, parameters: { barmanObjectName: "own" } }))).toEqual([
      expect.stringMatching(/spec.plugins\[0\] is disabled and its ObjectStore own is used all the same/),
    ]);
    expect(warnAboutStores(entry({ enabled: false, parameters: {} }))).toEqual([]);
  });

  test("a source without a server's name gets a word of warning", () => {
    expect(warnAboutStores(recovering)).toEqual([
      expect.stringMatching(/upstream names no serverName, so orders is read/),
    ]);
  });
});

describe("an archive of somebody else", () => {
  const follower = (replica: NonNullable<Cluster["spec"]["replica"]>, parameters: Record<string, string>) =>
    anArchivedCluster({
      replica,
      bootstrap: { recovery: { source: "a" } },
      externalClusters: [anExternalStore("a", { barmanObjectName: "own", ...parameters })],
    });
  const on = { source: "a", enabled: true };

  test.each([
    ["the same server by default", follower(on, {}), true],
    ["the same server by name", follower(on, { serverName: "orders" }), true],
    ["another server of the store", follower(on, { serverName: "a" }), false],
    ["another store", follower(on, { barmanObjectName: "depot" }), false],
  ])("is neither archived into nor recovered from: %s", (_name, cluster, isMixed) => {
    expect(checkReplicaArchive(cluster) !== null).toBe(isMixed);
    expect(checkRecoveryArchive(cluster) !== null).toBe(isMixed);
  });

  test("is the cluster's own once it follows nobody any more", () => {
    expect(checkReplicaArchive(follower({ source: "a", enabled: false }, {}))).toBeNull();
    expect(checkReplicaArchive(anArchivedCluster())).toBeNull();
    expect(checkReplicaArchive(follower(on, {}))).toMatch(/server orders of ObjectStore own; give one of them another/);
  });
});

describe("where WAL is restored from", () => {
  const stores = readClusterStores(recovering);
  const choose = (status: object, pod: string, cluster = recovering) =>
    chooseRestoreSource({ ...cluster, status }, readClusterStores(cluster), pod);

  test.each([
    [
      "while no primary exists: the recovery source, where nothing can be streamed",
      {},
      "orders-1",
      stores.recovery,
      false,
    ],
    ["on a standby: the own archive", { currentPrimary: "orders-2" }, "orders-1", stores.own, true],
    [
      "on the primary: the replica source, which can be connected to",
      { currentPrimary: "orders-1" },
      "orders-1",
      stores.replicaSource,
      true,
    ],
  ])("%s", (_, status, pod, store, streamingAvailable) => {
    expect(choose(status, pod)).toEqual({ store, streamingAvailable });
  });

  test("a source that cannot be connected to is never streamed from", () => {
    const cluster = anArchivedCluster({
      replica: { source: "upstream", enabled: true },
      externalClusters: [anExternalStore("upstream", { barmanObjectName: "depot", serverName: "far" })],
    });
    expect(choose({ currentPrimary: "orders-1" }, "orders-1", cluster)).toEqual({
      store: { objectStore: "depot", serverName: "far" },
      streamingAvailable: false,
    });
  });

  test("before there is a primary and without a recovery source: what the Cluster has", () => {
    expect(choose({}, "orders-1", anArchivedCluster())?.store).toEqual({ objectStore: "own", serverName: "orders" });
    expect(choose({}, "orders-1", anArchivedCluster({ plugins: [] }))).toBeUndefined();
  });
});
