import { describe, expect, test } from "vitest";
import type { PersistentVolumeClaim, Pod } from "../../../src/api/generated/kubernetes.ts";
import { matchesGlob } from "../../../src/build/glob.ts";
import { buildInstancePod } from "../../../src/build/instance-pod.ts";
import { inheritedMetadata } from "../../../src/build/metadata.ts";
import {
  mergeMetadata,
  pvcStatusPatch,
  repairPodMetadata,
  repairPvcMetadata,
  unhealthyPatch,
} from "../../../src/build/metadata-repair.ts";
import { buildPvcs } from "../../../src/build/pvcs.ts";
import { aCluster, aContext, type ClusterParts, context } from "./a-cluster.ts";

const led = (parts: ClusterParts = {}) => aCluster({ ...parts, status: { currentPrimary: "db-1" } });
const pod = (serial: number, labels: Record<string, string> = {}): Pod => {
  const built = buildInstancePod(aCluster(), serial, context);
  return { ...built, metadata: { ...built.metadata, labels: { ...built.metadata.labels, ...labels } } };
};
const role = (name: string) => ({ role: name, "cnpg.io/instanceRole": name });

describe("a pod", () => {
  test.each<[string, number, Record<string, string>, boolean, object | null]>([
    ["of the primary gets its role", 1, {}, true, { labels: role("primary") }],
    ["of a replica gets its role", 2, {}, true, { labels: role("replica") }],
    ["that is no longer unhealthy gets its role back", 2, role("unhealthy"), true, { labels: role("replica") }],
    [
      "with half a role gets the other half",
      2,
      { role: "replica" },
      true,
      { labels: { "cnpg.io/instanceRole": "replica" } },
    ],
    ["that is not active keeps its role", 2, role("primary"), false, null],
    ["in order is left alone", 2, role("replica"), true, null],
    [
      "whose identity was changed gets it back",
      2,
      { ...role("replica"), "cnpg.io/instanceName": "x", "cnpg.io/podRole": "x", "cnpg.io/cluster": "x" },
      true,
      { labels: { "cnpg.io/instanceName": "db-2", "cnpg.io/podRole": "instance", "cnpg.io/cluster": "db" } },
    ],
  ])("%s", (_case, serial, labels, active, change) => {
    expect(repairPodMetadata(led(), pod(serial, labels), context, { active })).toEqual(change && { metadata: change });
  });

  test("has no role before there is a primary", () => {
    expect(repairPodMetadata(aCluster(), pod(1), context, { active: true })).toBeNull();
  });

  test("gets what is inherited and what names its containers", () => {
    const cluster = led({
      annotations: {
        "container.apparmor.security.beta.kubernetes.io/postgres": "unconfined",
        "container.apparmor.security.beta.kubernetes.io/other": "unconfined",
        "seen.example/x": "1",
      },
      spec: { inheritedMetadata: { labels: { tier: "data" } } },
    });
    const inheriting = aContext({ inheritedAnnotations: ["seen.example/*"], operatorVersion: "1.30.1" });
    expect(repairPodMetadata(cluster, pod(1, role("primary")), inheriting, { active: true })).toEqual({
      metadata: {
        labels: { tier: "data" },
        annotations: {
          "container.apparmor.security.beta.kubernetes.io/postgres": "unconfined",
          "seen.example/x": "1",
        },
      },
    });
  });
});

describe("a volume", () => {
  const spec = {
    walStorage: { size: "1Gi" },
    tablespaces: [{ name: "Hot", storage: { size: "1Gi" } }],
  };
  const [data, wal, hot] = buildPvcs(aCluster({ spec }), 2, context) as [
    PersistentVolumeClaim,
    PersistentVolumeClaim,
    PersistentVolumeClaim,
  ];
  const stripped = (pvc: PersistentVolumeClaim): PersistentVolumeClaim => ({
    ...pvc,
    metadata: { ...pvc.metadata, labels: {}, annotations: { "cnpg.io/nodeSerial": "2" } },
  });

  test.each([
    ["data", data, { "cnpg.io/pvcRole": "PG_DATA" }],
    ["WAL", wal, { "cnpg.io/pvcRole": "PG_WAL" }],
    ["tablespace", hot, { "cnpg.io/pvcRole": "PG_TABLESPACE", "cnpg.io/tablespaceName": "Hot" }],
  ])("of %s is told what it is by its name", (_kind, pvc, labels) => {
    expect(repairPvcMetadata(led({ spec }), stripped(pvc), context)).toEqual({
      metadata: {
        labels: {
          ...labels,
          ...role("replica"),
          "cnpg.io/cluster": "db",
          "cnpg.io/instanceName": "db-2",
          "app.kubernetes.io/name": "postgresql",
          "app.kubernetes.io/component": "database",
          "app.kubernetes.io/managed-by": "cloudnative-pg",
        },
        annotations: { "cnpg.io/operatorVersion": "1.30.0" },
      },
    });
  });

  test("takes the serial of the pod that uses it", () => {
    const lost = { ...data, metadata: { ...data.metadata, annotations: {} } };
    expect(repairPvcMetadata(aCluster({ spec }), lost, context, { serial: 2 })).toEqual({
      metadata: { annotations: { "cnpg.io/nodeSerial": "2", "cnpg.io/operatorVersion": "1.30.0" } },
    });
  });

  test("in order is left alone", () => {
    expect(repairPvcMetadata(aCluster({ spec }), wal, context)).toBeNull();
  });
});

test("labels and annotations are laid over what is there", () => {
  const live = { name: "x", resourceVersion: "1", labels: { a: "1", b: "2" } };
  expect(mergeMetadata(live, { labels: { b: "2" } })).toBeNull();
  expect(mergeMetadata(live, { labels: { b: "3" }, annotations: { c: "4" } })).toEqual({
    name: "x",
    resourceVersion: "1",
    labels: { a: "1", b: "3" },
    annotations: { c: "4" },
  });
});

test("patches for single facts", () => {
  expect(unhealthyPatch).toEqual({ metadata: { labels: role("unhealthy") } });
  expect(pvcStatusPatch("ready")).toEqual({ metadata: { annotations: { "cnpg.io/pvcStatus": "ready" } } });
});

describe("inheritance", () => {
  test.each<[string, string, boolean]>([
    ["team", "team", true],
    ["team", "teams", false],
    ["te*", "team", true],
    ["*", "team", true],
    ["*", "a.example/team", false],
    ["a.example/*", "a.example/team", true],
    ["*.example/*", "a.example/team", true],
    ["t?am", "team", true],
    ["a?b", "a/b", false],
    ["t[a-f]am", "team", true],
    ["t[^a-f]am", "team", false],
    ["t[^x]am", "team", true],
    ["a[/]b", "a/b", false],
    ["a.c", "abc", false],
    ["\\*", "*", true],
    ["\\*", "x", false],
    ["t[a-", "ta", false],
    ["t\\", "t", false],
    ["(a|b)+", "a", false],
  ])("pattern %s and key %s: %s", (pattern, key, matches) => {
    expect(matchesGlob(pattern, key)).toBe(matches);
  });

  test("cannot take over the cluster's label or the operator's version", () => {
    const cluster = aCluster({
      labels: { "cnpg.io/cluster": "x" },
      spec: {
        inheritedMetadata: { labels: { "cnpg.io/cluster": "y" }, annotations: { "cnpg.io/operatorVersion": "0" } },
      },
    });
    expect(inheritedMetadata(cluster, aContext({ inheritedLabels: ["cnpg.io/*"] }))).toEqual({
      labels: { "cnpg.io/cluster": "db" },
      annotations: { "cnpg.io/operatorVersion": "1.30.0" },
    });
  });
});
