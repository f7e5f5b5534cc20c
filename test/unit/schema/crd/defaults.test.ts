import { describe, expect, it } from "vitest";
import { applySchemaDefaults, crdKinds } from "../../../../src/schema/crd/index.ts";
import { manifestOf, minimalSpecs } from "../../crds/minimal-specs.ts";

function specWithDefaults(spec: object): Record<string, unknown> {
  return applySchemaDefaults("Cluster", manifestOf("Cluster", spec))["spec"] as Record<string, unknown>;
}

describe("applySchemaDefaults", () => {
  it("fills in what a Cluster leaves out", () => {
    expect(specWithDefaults({ storage: { size: "1Gi" } })).toEqual({
      enablePDB: true,
      enableSuperuserAccess: false,
      failoverDelay: 0,
      instances: 1,
      logLevel: "info",
      maxSyncReplicas: 0,
      minSyncReplicas: 0,
      postgresGID: 26,
      postgresUID: 26,
      primaryUpdateMethod: "restart",
      primaryUpdateStrategy: "unsupervised",
      replicationSlots: { highAvailability: { enabled: true, slotPrefix: "_cnpg_" }, updateInterval: 30 },
      smartShutdownTimeout: 180,
      startDelay: 3600,
      stopDelay: 1800,
      storage: { resizeInUseVolumes: true, size: "1Gi" },
      switchoverDelay: 3600,
    });
  });

  it("completes the default of an object by the defaults of its fields", () => {
    const { backup } = specWithDefaults({ backup: { volumeSnapshot: { className: "fast" } } });
    expect(backup).toEqual({
      target: "prefer-standby",
      volumeSnapshot: {
        className: "fast",
        online: true,
        onlineConfiguration: { immediateCheckpoint: false, waitForArchive: true },
        snapshotOwnerReference: "none",
      },
    });
  });

  it("reaches into items of lists and into core types", () => {
    const spec = specWithDefaults({
      env: [{ name: "A", valueFrom: { secretKeyRef: { key: "k" } } }],
      managed: {
        services: {
          additional: [{ selectorType: "rw", serviceTemplate: { spec: { ports: [{ port: 5432 }] } } }],
        },
      },
    });
    expect(spec["env"]).toEqual([{ name: "A", valueFrom: { secretKeyRef: { key: "k", name: "" } } }]);
    expect(spec["managed"]).toEqual({
      services: {
        additional: [
          {
            selectorType: "rw",
            serviceTemplate: { spec: { ports: [{ port: 5432, protocol: "TCP" }] } },
            updateStrategy: "patch",
          },
        ],
      },
    });
  });

  it("keeps what is given, false, zero and empty text included", () => {
    const given = { enablePDB: false, switchoverDelay: 0, replicationSlots: { highAvailability: { slotPrefix: "" } } };
    expect(specWithDefaults(given)).toMatchObject({
      enablePDB: false,
      switchoverDelay: 0,
      replicationSlots: { highAvailability: { enabled: true, slotPrefix: "" } },
    });
  });

  it("takes null and undefined for a field that is left out", () => {
    const spec = specWithDefaults({ enablePDB: null, logLevel: undefined, imageName: null, storage: { size: "1Gi" } });
    expect(spec).toMatchObject({ enablePDB: true, logLevel: "info" });
    expect(spec).not.toHaveProperty("imageName");
  });

  it("makes no object that nobody asked for", () => {
    expect(specWithDefaults({})).not.toHaveProperty("backup");
    expect(specWithDefaults({})).not.toHaveProperty("primaryLease");
    expect(specWithDefaults({ primaryLease: {} })["primaryLease"]).toEqual({
      leaseDurationSeconds: 15,
      releasedLeaseDurationSeconds: 1,
      renewDeadlineSeconds: 10,
      retryPeriodSeconds: 2,
    });
  });

  it("leaves the argument alone and shares no part of it", () => {
    const object = manifestOf("Cluster", { inheritedMetadata: { labels: { a: "b" } }, unknown: [{ a: 1 }] });
    const before = structuredClone(object);
    const result = applySchemaDefaults("Cluster", object) as { spec: { unknown: { a: number }[] } };
    const first = result.spec.unknown[0];
    if (first) first.a = 2;
    expect(object).toEqual(before);
  });

  it.each(crdKinds)("changes nothing the second time: %s", (kind) => {
    const once = applySchemaDefaults(kind, manifestOf(kind, minimalSpecs[kind]));
    expect(applySchemaDefaults(kind, once)).toEqual(once);
  });

  it.each([
    ["Backup", { method: "barmanObjectStore" }],
    ["ScheduledBackup", { method: "barmanObjectStore", backupOwnerReference: "none" }],
    ["Pooler", { type: "rw", instances: 1, pgbouncer: { poolMode: "session", paused: false } }],
    ["Database", { ensure: "present", databaseReclaimPolicy: "retain" }],
    ["DatabaseRole", { connectionLimit: -1, inherit: true, databaseRoleReclaimPolicy: "retain" }],
    ["Publication", { publicationReclaimPolicy: "retain" }],
    ["Subscription", { subscriptionReclaimPolicy: "retain" }],
  ] as const)("has the defaults of %s", (kind, expected) => {
    expect(applySchemaDefaults(kind, manifestOf(kind, minimalSpecs[kind]))["spec"]).toMatchObject(expected);
  });
});
