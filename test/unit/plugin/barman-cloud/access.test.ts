import { describe, expect, test } from "vitest";
import type { Role } from "../../../../src/api/generated/kubernetes.ts";
import {
  buildAccessBinding,
  buildAccessRole,
  buildAccessRules,
  storesOfRole,
} from "../../../../src/plugin/barman-cloud/access-role.ts";
import { planBinding, planRole, planRules } from "../../../../src/plugin/barman-cloud/plan-access.ts";
import { anArchivedCluster, anObjectStore } from "../../../support/barman-cloud-objects.ts";

const cluster = anArchivedCluster();

describe("the Role of a cluster's instances", () => {
  test("names the stores and the credentials, each once, in order", () => {
    const azure = anObjectStore(
      "b",
      {},
      {
        s3Credentials: undefined as never,
        azureCredentials: { storageAccount: { name: "z", key: "a" }, storageKey: { name: "y", key: "k" } },
        endpointCA: { name: "authority", key: "ca.crt" },
      },
    );
    const role = buildAccessRole(cluster, [azure, anObjectStore("a")]);
    expect(role.rules).toEqual([
      {
        apiGroups: ["barmancloud.cnpg.io"],
        resources: ["objectstores"],
        verbs: ["get", "watch", "list"],
        resourceNames: ["a", "b"],
      },
      {
        apiGroups: ["barmancloud.cnpg.io"],
        resources: ["objectstores/status"],
        verbs: ["update"],
        resourceNames: ["a", "b"],
      },
      { apiGroups: [""], resources: ["secrets"], verbs: ["get", "watch", "list"], resourceNames: ["keys", "y", "z"] },
    ]);
    expect(storesOfRole(role)).toEqual(["a", "b"]);
    expect(role.metadata).toMatchObject({
      name: "orders-barman-cloud",
      namespace: "shop",
      labels: {
        "barmancloud.cnpg.io/cluster": "orders",
        "app.kubernetes.io/instance": "orders",
        "app.kubernetes.io/name": "barman-cloud-plugin",
        "app.kubernetes.io/version": "0.14.0",
        "app.kubernetes.io/component": "database",
        "app.kubernetes.io/managed-by": "plugin-barman-cloud",
      },
      ownerReferences: [
        { kind: "Cluster", name: "orders", uid: "uid-orders", controller: true, blockOwnerDeletion: true },
      ],
    });
  });

  test("has no rule without names: it would open every Secret of the namespace", () => {
    const ambient = anObjectStore("iam", {}, { s3Credentials: { inheritFromIAMRole: true } });
    expect(buildAccessRules([ambient]).map(({ resources }) => resources)).toEqual([
      ["objectstores"],
      ["objectstores/status"],
    ]);
    expect(buildAccessRules([])).toEqual([]);
  });

  test("needs to know what a Cluster is, to be owned by it", () => {
    expect(() => buildAccessRole({ ...cluster, kind: undefined as never }, [])).toThrow(/without apiVersion or kind/);
  });
});

describe("what is written", () => {
  const wanted = buildAccessRole(cluster, [anObjectStore("own")]);
  const live: Role = { ...wanted, metadata: { ...wanted.metadata, resourceVersion: "7" } };

  test.each<[string, Role | undefined, string]>([
    ["nothing when all is there", live, "none"],
    ["the Role when it is missing", undefined, "create"],
    ["new rules", { ...live, rules: [] }, "update"],
    [
      "labels that an older release did not write",
      { ...live, metadata: { ...live.metadata, labels: { mine: "x" } } },
      "update",
    ],
  ])("%s", (_, present, kind) => {
    expect(planRole(present, wanted).kind).toBe(kind);
  });

  test("labels of others stay, and so does the version that the write depends on", () => {
    const step = planRole({ ...live, metadata: { ...live.metadata, labels: { mine: "x" } } }, wanted);
    expect(step).toMatchObject({
      object: { metadata: { resourceVersion: "7", labels: { mine: "x", ...wanted.metadata.labels } } },
    });
  });

  test("an ObjectStore's change touches rules only", () => {
    const bare = { ...live, metadata: { name: "x" } };
    expect(planRules(bare, live.rules ?? []).kind).toBe("none");
    expect(planRules(bare, [])).toMatchObject({ kind: "update", object: { metadata: { name: "x" }, rules: [] } });
  });

  test("subjects are added, never taken away; another Role is not silently bound", () => {
    const own = buildAccessBinding(anArchivedCluster({ serviceAccountName: "robot" }));
    expect(own.subjects?.map(({ name }) => name)).toEqual(["orders", "robot"]);
    const extra = { ...own, subjects: [{ kind: "User", name: "eve" }, ...(own.subjects ?? []).slice(0, 1)] };
    const step = planBinding(extra, own);
    expect(step.kind === "update" && step.object.subjects?.map(({ name }) => name)).toEqual(["eve", "orders", "robot"]);
    expect(planBinding(own, own).kind).toBe("none");
    const other = { ...own, roleRef: { ...own.roleRef, name: "admin" } };
    expect(() => planBinding(other, own)).toThrow(/refers to Role admin and cannot be changed: delete it/);
  });
});
