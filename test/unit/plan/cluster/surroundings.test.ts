import { describe, expect, it } from "vitest";
import type { Cluster } from "../../../../src/api/generated/cluster.ts";
import type { Lease } from "../../../../src/api/generated/kubernetes.ts";
import { phases } from "../../../../src/api/phases.ts";
import type { ObservedCluster, PolledInstance } from "../../../../src/plan/cluster/observed.ts";
import { aHealthyCluster, aPod, image, plan, silent, stepsOf, volumesOf, withPods } from "./fixtures.ts";

function stepsWith(
  change: (it: ObservedCluster) => Partial<ObservedCluster>,
  spec: Partial<Cluster["spec"]> = {},
): string[] {
  const { cluster, observed } = aHealthyCluster();
  const result = plan({ ...cluster, spec: { ...cluster.spec, ...spec } }, { ...observed, ...change(observed) });
  return stepsOf(result.actions);
}

const without = <T>(map: ReadonlyMap<string, T>, key: string): Map<string, T> =>
  new Map([...map].filter(([it]) => it !== key));
const keep = () => ({});

describe("what surrounds the instances", () => {
  it.each<[string, (it: ObservedCluster) => Partial<ObservedCluster>, Partial<Cluster["spec"]>, string[]]>([
    ["a missing Service", (it) => ({ services: without(it.services, "c-rw") }), {}, ["createService c-rw"]],
    [
      "a Service that is disabled",
      keep,
      { managed: { services: { disabledDefaultServices: ["ro"] } } },
      ["issueCertificate", "deleteService c-ro"],
    ],
    [
      "a missing budget",
      (it) => ({ budgets: without(it.budgets, "c") }),
      {},
      ["event CreatingPodDisruptionBudget", "createPodDisruptionBudget c"],
    ],
    [
      "budgets that are switched off",
      keep,
      { enablePDB: false },
      [
        "event DeletingPodDisruptionBudget",
        "deletePodDisruptionBudget c-primary",
        "event DeletingPodDisruptionBudget",
        "deletePodDisruptionBudget c",
      ],
    ],
    [
      "a missing account",
      (it) => ({ serviceAccounts: without(it.serviceAccounts, "c") }),
      {},
      ["event CreatingServiceAccount", "createServiceAccount c"],
    ],
    ["a missing role", (it) => ({ roles: without(it.roles, "c") }), {}, ["event CreatingRole", "createRole c"]],
    ["a missing role binding", (it) => ({ roleBindings: without(it.roleBindings, "c") }), {}, ["createRoleBinding c"]],
    ["a missing lease", () => ({ lease: undefined }), {}, ["createLease c"]],
    ["a missing user secret", (it) => ({ secrets: without(it.secrets, "c-app") }), {}, ["createCredentials"]],
    ["access for the superuser", keep, { enableSuperuserAccess: true }, ["createCredentials"]],
    [
      "a failover quorum",
      keep,
      { postgresql: { synchronous: { method: "any", number: 1, failoverQuorum: true } } },
      ["createFailoverQuorum c"],
    ],
    [
      "a certificate that is missing",
      (it) => ({ certificates: without(it.certificates, "c-server") }),
      {},
      ["issueCertificate"],
    ],
    [
      "another name for the server",
      keep,
      { certificates: { serverAltDNSNames: ["db.example.org"] } },
      ["issueCertificate"],
    ],
  ])("%s", (_, change, spec, expected) => {
    expect(stepsWith(change, spec)).toEqual(expected);
  });

  it.each<[string, (it: ObservedCluster) => Partial<ObservedCluster>, Partial<Cluster["spec"]>, string]>([
    [
      "an account that the user named and did not make",
      keep,
      { serviceAccountName: "mine" },
      'Specified ServiceAccount "mine" not found in namespace "ns"',
    ],
    [
      "an authority that the user named and did not make",
      keep,
      { certificates: { serverCASecret: "mine" } },
      "secret mine does not exist",
    ],
    [
      "a lease of somebody else",
      (it) => ({ lease: ofSomebodyElse(it.lease) }),
      {},
      'primary lease ns/c is controlled by Deployment "d", refusing to adopt',
    ],
    [
      "a role of somebody else",
      (it) => ({
        roles: new Map([...it.roles].map(([name, role]) => [name, { ...role, metadata: { name, namespace: "ns" } }])),
      }),
      {},
      "role c exists and does not belong to the cluster",
    ],
  ])("%s is told and ends the pass", (_, change, spec, expected) => {
    const { cluster, observed } = aHealthyCluster();
    const given = { ...cluster, spec: { ...cluster.spec, ...spec } };
    const result = plan(given, { ...observed, ...change(observed) });
    expect(result.status.phase).toBe(phases.cannotCreateObjects);
    expect(result.status.phaseReason).toContain(expected);
    expect(result.actions.some((it) => it.kind === "event" && it.type === "Warning")).toBe(true);
    const again = plan({ ...given, status: result.status }, { ...observed, ...change(observed) });
    expect(again.actions.filter((it) => it.kind === "event" && it.type === "Warning")).toEqual([]);
  });

  it.each<[string, (pods: ObservedCluster) => PolledInstance[], Record<string, string>]>([
    // They may not read a Secret that the role does not name yet, so that they go on with what nobody trusts any more.
    ["no ready instance answers", (it) => it.pods.map((pod) => silent(pod)), {}],
    [
      "the ready primary does not answer",
      (it) => [...it.instances.slice(1), ...it.pods.slice(0, 1).map((pod) => silent(pod))],
      {},
    ],
    ["the cluster sleeps", () => [], { "cnpg.io/hibernation": "on" }],
  ])("is made while %s", (_, instancesOf, annotations) => {
    const { cluster, observed } = aHealthyCluster();
    const given = { ...cluster, metadata: { ...cluster.metadata, annotations } };
    const instances = instancesOf(observed);
    const pods = instances.length > 0 ? observed.pods : [];
    const steps = stepsOf(plan(given, { ...observed, pods, instances, roles: new Map() }).actions);
    expect(steps).toContain("createRole c");
    expect(steps.filter((it) => it.startsWith("delete") || it.startsWith("createPod"))).toEqual([]);
  });

  it("an authority of the user's that is missing is told although nobody can be asked without it", () => {
    const { cluster, observed } = aHealthyCluster({ certificates: { serverCASecret: "mine" } });
    const reason = "the server's certificate authority is not known";
    const result = plan(cluster, { ...observed, instances: observed.pods.map((pod) => silent(pod, reason)) });
    expect(result.status.phase).toBe(phases.cannotCreateObjects);
    expect(result.status.phaseReason).toContain("secret mine does not exist");
    expect(stepsOf(result.actions)).toContain("event SecretNotFound");
    expect(result.status.targetPrimary).toBe("c-1");
  });

  it.each<[string, Partial<Cluster["spec"]>, string, string]>([
    ["that is missing", { certificates: { serverCASecret: "mine" } }, "SecretNotFound", "Getting secret mine"],
  ])("an authority of the user's %s is told in an event of its own words", (_, spec, reason, message) => {
    const { cluster, observed } = aHealthyCluster();
    const result = plan({ ...cluster, spec: { ...cluster.spec, ...spec } }, observed);
    const told = result.actions.flatMap((it) => (it.kind === "event" ? [[it.event, it.message]] : []));
    expect(told).toContainEqual([reason, message]);
  });

  it("takes over the lease of an earlier cluster of its name", () => {
    const stale = (lease: Lease | undefined): Lease => ({
      ...(lease as Lease),
      metadata: {
        ...lease?.metadata,
        ownerReferences: [
          { apiVersion: "postgresql.cnpg.io/v1", kind: "Cluster", name: "c", uid: "old", controller: true },
        ],
      },
    });
    expect(stepsWith((it) => ({ lease: stale(it.lease) }))).toEqual(["updateLease c"]);
  });

  it("copies the operator's pull secret and default queries", () => {
    const secret = {
      apiVersion: "v1" as const,
      kind: "Secret" as const,
      type: "kubernetes.io/dockerconfigjson",
      data: { a: "b" },
      metadata: { name: "cnpg-pull-secret", namespace: "op" },
    };
    const queries = {
      apiVersion: "v1" as const,
      kind: "ConfigMap" as const,
      data: { queries: "q" },
      metadata: { name: "q", namespace: "op" },
    };
    const steps = stepsWith(() => ({ operatorObjects: { pullSecret: secret, queriesConfigMap: queries } }));
    expect(steps).toContain("createSecret c-pull");
    expect(steps).toContain("createConfigMap cnpg-default-monitoring");
    expect(steps).toContain("updateServiceAccount c");
  });
});

function ofSomebodyElse(lease: Lease | undefined): Lease {
  const owner = { apiVersion: "apps/v1", kind: "Deployment", name: "d", uid: "u", controller: true };
  return { ...(lease as Lease), metadata: { ...lease?.metadata, ownerReferences: [owner] } };
}

describe("the image", () => {
  const catalog = {
    apiVersion: "postgresql.cnpg.io/v1" as const,
    kind: "ImageCatalog" as const,
    metadata: { name: "cat", namespace: "ns" },
    spec: { images: [{ major: 17, image: "example.org/catalogued:17" }] },
  };
  const ref = (major: number, kind = "ImageCatalog") => ({ apiGroup: "postgresql.cnpg.io", kind, name: "cat", major });

  function imageOf(spec: Partial<Cluster["spec"]>) {
    const { cluster, observed } = aHealthyCluster();
    const { imageName: _, ...rest } = cluster.spec;
    const imageCatalogs = new Map([["cat", catalog]]);
    return plan({ ...cluster, spec: { ...rest, ...spec } as Cluster["spec"] }, { ...observed, imageCatalogs }).status;
  }

  it("comes from a catalog", () => {
    expect(imageOf({ imageCatalogRef: ref(17) }).image).toBe("example.org/catalogued:17");
  });

  it.each<[string, Partial<Cluster["spec"]>, string]>([
    [
      "a catalog that is missing",
      { imageCatalogRef: ref(17, "ClusterImageCatalog") },
      "catalog ClusterImageCatalog/cat not found",
    ],
    [
      "a major version that the catalog lacks",
      { imageCatalogRef: ref(16) },
      "selected major version is not available in the catalog",
    ],
    [
      "a lower major version",
      { imageName: "example.org/postgresql:16" },
      "cannot downgrade the PostgreSQL major version from 17 to 16",
    ],
    [
      "a tag that tells no version",
      { imageName: "example.org/postgresql:latest" },
      "cannot tell the PostgreSQL major version",
    ],
    [
      "an extension without an image",
      { imageName: "example.org/postgresql:17.2", postgresql: { extensions: [{ name: "x" }] } },
      "cannot retrieve extensions for image",
    ],
  ])("with %s is told", (_, spec, expected) => {
    const status = imageOf(spec);
    expect(status.phase).toBe(phases.imageCatalogError);
    expect(status.phaseReason).toContain(expected);
  });

  it("of a higher major version is not started on data of the lower one", () => {
    const { cluster, observed } = aHealthyCluster();
    const result = plan({ ...cluster, spec: { ...cluster.spec, imageName: "example.org/postgresql:18.1" } }, observed);
    expect(result.status.image).toBe(image);
    expect(result.status.pgDataImageInfo?.majorVersion).toBe(17);
    expect(result.status.phase).toBe(phases.imageCatalogError);
    expect(stepsOf(result.actions)).toEqual(["event UnsupportedUpgrade"]);
  });
});

describe("volumes", () => {
  it("grow, and never shrink", () => {
    expect(stepsWith(keep, { storage: { size: "2Gi" } })).toEqual(
      [1, 2, 3].map((it) => `patchPersistentVolumeClaim c-${it}`),
    );
    expect(stepsWith(keep, { storage: { size: "1024Mi" } })).toEqual([]);
    expect(stepsWith(keep, { storage: { size: "512Mi" } })).toEqual([]);
    expect(stepsWith(keep, { storage: { size: "2Gi", resizeInUseVolumes: false } })).toEqual([]);
    const template = (storage: string) => ({ pvcTemplate: { resources: { requests: { storage } } } });
    expect(stepsWith(keep, { storage: template("2Gi") })).toEqual(
      [1, 2, 3].map((it) => `patchPersistentVolumeClaim c-${it}`),
    );
    expect(stepsWith(keep, { storage: template("1024Mi") })).toEqual([]);
    expect(stepsWith(keep, { storage: template("512Mi") })).toEqual([]);
  });

  describe("follow the attributes class of their own template", () => {
    const storage = (volumeAttributesClassName?: string) => ({
      size: "1Gi",
      pvcTemplate: { ...(volumeAttributesClassName === undefined ? {} : { volumeAttributesClassName }) },
    });
    /** Three instances whose volumes have the class `gold`. */
    const golden = ({ volumes }: ObservedCluster) => ({
      volumes: volumes.map((it) => ({ ...it, spec: { ...it.spec, volumeAttributesClassName: "gold" } })),
    });
    const unbound = ({ volumes }: ObservedCluster) => ({
      volumes: volumes.map((it) => ({ ...it, status: { phase: "Pending" as const } })),
    });
    const patched = [1, 2, 3].map((it) => `patchPersistentVolumeClaim c-${it}`);

    it.each<[string, (it: ObservedCluster) => Partial<ObservedCluster>, Partial<Cluster["spec"]>, string[]]>([
      ["when it is new", keep, { storage: storage("silver") }, patched],
      ["when it is another one", golden, { storage: storage("silver") }, patched],
      ["not when they have it", golden, { storage: storage("gold") }, []],
      ["not before they are bound", unbound, { storage: storage("silver") }, []],
      ["not to none", golden, { storage: storage() }, []],
      ["not to an empty one", golden, { storage: storage("") }, []],
      ["not when there is no template", golden, { storage: { size: "1Gi" } }, []],
      ["also where they must not grow", keep, { storage: { ...storage("x"), resizeInUseVolumes: false } }, patched],
    ])("%s", (_, volumes, spec, expected) => {
      expect(stepsWith(volumes, spec)).toEqual(expected);
    });

    it("apart from their size, which may be refused", () => {
      const { cluster, observed } = aHealthyCluster();
      const spec = { ...cluster.spec, storage: { ...storage("silver"), size: "2Gi" } };
      const patches = plan({ ...cluster, spec }, { ...observed, ...golden(observed) }).actions.flatMap((it) =>
        it.kind === "patch" && it.target.name === "c-1" ? [[it.patch, it.failureEvent, it.reason]] : [],
      );
      expect(patches).toEqual([
        [
          { spec: { resources: { requests: { storage: "2Gi" } } } },
          "VolumeCannotGrow",
          "volume c-1 is to grow from 1Gi to 2Gi",
        ],
        [
          { spec: { volumeAttributesClassName: "silver" } },
          "VolumeCannotBeModified",
          "volume c-1 is to have the attributes of silver instead of gold",
        ],
      ]);
    });
  });

  it("that are new in the spec are added to the instances there are", () => {
    expect(stepsWith(keep, { walStorage: { size: "1Gi" } })).toEqual(
      [1, 2, 3].map((it) => `createPersistentVolumeClaim c-${it}-wal`),
    );
  });
});

describe("scaling down", () => {
  it.each<[string, string, string[]]>([
    ["the highest serial", "c-1", ["event ScaleDown", "deletePersistentVolumeClaim c-3", "deletePod c-3"]],
    ["never the primary", "c-3", ["event ScaleDown", "deletePersistentVolumeClaim c-2", "deletePod c-2"]],
  ])("removes %s", (_, primary, expected) => {
    const { cluster, observed } = aHealthyCluster();
    const status = { ...cluster.status, currentPrimary: primary, targetPrimary: primary };
    const moved: Cluster = { ...cluster, status, spec: { ...cluster.spec, instances: 2 } };
    const instances = observed.instances.map((it) =>
      it.kind === "answered" ? { ...it, status: { ...it.status, isPrimary: it.name === primary } } : it,
    );
    const pods = [1, 2, 3].map((serial) => aPod(moved, serial));
    const settled = {
      ...withPods({ ...observed, instances }, pods),
      volumes: [1, 2, 3].flatMap((it) => volumesOf(moved, it)),
    };
    const steps = stepsOf(plan(moved, settled).actions).filter((it) => !it.includes("PodDisruptionBudget"));
    expect(steps).toEqual(expected);
  });

  it("removes first what does not run", () => {
    const { cluster, observed } = aHealthyCluster();
    const pods = observed.pods.filter((it) => it.metadata.name !== "c-2");
    const smaller = { ...cluster, spec: { ...cluster.spec, instances: 2 } };
    const steps = stepsOf(plan(smaller, withPods(observed, pods)).actions);
    expect(steps).toContain("deletePersistentVolumeClaim c-2");
    expect(steps.some((it) => it.includes("c-3"))).toBe(false);
  });

  it("stops at what synchronous replication needs", () => {
    const steps = stepsWith(keep, { instances: 2, maxSyncReplicas: 2 });
    expect(steps).toContain("event NoScaleDown");
    expect(steps).toContain("patchCluster");
    expect(steps.some((it) => it.startsWith("deletePod c"))).toBe(false);
  });
});
