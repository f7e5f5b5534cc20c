import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { phases } from "../../src/api/phases.ts";
import { createCluster, type TestCluster } from "./support/cluster.ts";
import { apply, kubectl } from "./support/kubectl.ts";
import { waitFor } from "./support/wait.ts";

function clusterObject(namespace: string, name: string, spec: object): object {
  return {
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Cluster",
    metadata: { name, namespace },
    spec: { instances: 1, imageName: "localhost/postgresql:17", storage: { size: "1Gi" }, ...spec },
  };
}

/** Rejections by schema or webhook: what the user is told names the field. */
const refused: readonly { what: string; name: string; spec: object; says: RegExp }[] = [
  { what: "no instances", name: "none", spec: { instances: 0 }, says: /spec\.instances/ },
  {
    what: "a wrong volume size",
    name: "size",
    spec: { storage: { size: "1Gigabyte" } },
    says: /spec\.storage\.size.*Size value isn't valid/,
  },
  {
    what: "an image without a version",
    name: "latest",
    spec: { imageName: "localhost/postgresql:latest" },
    says: /spec\.imageName.*latest/,
  },
  { what: "a name over 50 characters", name: "n".repeat(51), spec: {}, says: /maximum length of a cluster name is 50/ },
  {
    what: "a parameter that is not the user's",
    name: "fixed",
    spec: { postgresql: { parameters: { port: "5433" } } },
    says: /postgresql\.parameters\.port/,
  },
  {
    what: "two bootstrap methods",
    name: "two",
    spec: { bootstrap: { initdb: {}, recovery: {} } },
    says: /Only one bootstrap method/,
  },
];

/** Other kinds, each with the words that a person reads. */
const otherKinds: readonly { kind: string; spec: object; says: RegExp }[] = [
  { kind: "Backup", spec: { method: "plugin" }, says: /spec\.pluginConfiguration.*cannot be empty/ },
  { kind: "ScheduledBackup", spec: { schedule: "every day" }, says: /spec\.schedule/ },
  {
    kind: "Database",
    spec: { name: "app", owner: "app", schemas: [{ name: "one" }, { name: "one" }] },
    says: /spec\.schemas\[1\]\.name.*Duplicate value/,
  },
  {
    kind: "Pooler",
    spec: { pgbouncer: { parameters: { listen_port: "1" } } },
    says: /Invalid or reserved parameter/,
  },
  { kind: "DatabaseRole", spec: { name: "pg_writer" }, says: /role names starting with pg_ are reserved/ },
  {
    kind: "Publication",
    spec: { dbname: "app", name: "p", target: { allTables: true, objects: [{ tablesInSchema: "public" }] } },
    says: /allTables and objects are mutually exclusive/,
  },
];

describe("bad input", () => {
  let bystander: TestCluster;

  beforeAll(async () => {
    bystander = await createCluster("bystander", { instances: 1 });
    await bystander.healthy(1);
  });
  afterAll(async () => {
    await bystander?.remove();
  });

  test.each(refused)("$what is refused with the field and the rule", async ({ name, spec, says }) => {
    await expect(apply(clusterObject(bystander.namespace, name, spec))).rejects.toThrow(says);
  });

  test.each(otherKinds)("a wrong $kind is refused with the field and the rule", async ({ kind, spec, says }) => {
    const object = {
      apiVersion: "postgresql.cnpg.io/v1",
      kind,
      metadata: { name: "wrong", namespace: bystander.namespace },
      spec: { cluster: { name: "bystander" }, ...spec },
    };
    await expect(apply(object)).rejects.toThrow(says);
  });

  test("a field that does not exist is refused by its name", async () => {
    const object = clusterObject(bystander.namespace, "unknown", { instancse: 3 });
    await expect(apply(object)).rejects.toThrow(/unknown field "(spec\.)?instancse"/);
  });

  test("several clusters whose catalog is missing are each told, and disturb nobody", async () => {
    const catalog = { apiGroup: "postgresql.cnpg.io", kind: "ImageCatalog", name: "absent", major: 17 };
    const names = ["lost-one", "lost-two", "lost-three"];
    for (const name of names) {
      await apply(clusterObject(bystander.namespace, name, { imageName: undefined, imageCatalogRef: catalog }));
    }
    const phaseOf = (name: string) =>
      kubectl(["get", "cluster", name, "-n", bystander.namespace, "-o", "jsonpath={.status.phase}"]);
    for (const name of names) {
      await waitFor(`phase of ${name}`, 60_000, async () => (await phaseOf(name)) === phases.imageCatalogError);
    }
    await bystander.healthy(1);
  });

  test("an image that does not exist leaves a clear phase and disturbs nobody", async () => {
    await apply(clusterObject(bystander.namespace, "noimage", { imageName: "localhost/absent:17", instances: 1 }));
    await waitFor("phase of the cluster without image", 60_000, async () => {
      const text = await kubectl([
        "get",
        "cluster",
        "noimage",
        "-n",
        bystander.namespace,
        "-o",
        "jsonpath={.status.phase}",
      ]);
      return text === phases.settingUpPrimary;
    });
    const other = await createCluster("newcomer", { instances: 1 });
    try {
      await other.healthy(1);
      await bystander.healthy(1);
    } finally {
      await other.remove();
    }
  });

  test("an affinity that no node meets leaves the pod pending and a phase that says so", async () => {
    await apply(
      clusterObject(bystander.namespace, "nowhere", {
        instances: 1,
        affinity: { nodeSelector: { "example.com/absent": "yes" } },
      }),
    );
    await waitFor("event about scheduling", 60_000, async () => {
      const events = await kubectl(["get", "events", "-n", bystander.namespace, "-o", "jsonpath={.items[*].reason}"]);
      return events.includes("FailedScheduling");
    });
    const phase = await kubectl([
      "get",
      "cluster",
      "nowhere",
      "-n",
      bystander.namespace,
      "-o",
      "jsonpath={.status.phase}",
    ]);
    expect(phase).toBe(phases.settingUpPrimary);
    await bystander.healthy(1);
  });
});
