import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type CrdManifest, customResourceDefinitions } from "../../../constructs/crds/index.ts";
import { type ControlPlane, startControlPlane } from "../../../local/control-plane/control-plane.ts";
import {
  applySchemaDefaults,
  type CrdKind,
  crdKinds,
  evaluateCelRules,
  validateAgainstSchema,
} from "../../../src/schema/crd/index.ts";
import { type Answer, ApiServer, conditionsOf, installDefinitions } from "../../reference/api-server.ts";
import { celCases } from "../../unit/crds/cel-cases.ts";
import { manifestOf, minimalSpecs } from "../../unit/crds/minimal-specs.ts";

let controlPlane: ControlPlane;
let server: ApiServer;

beforeAll(async () => {
  controlPlane = await startControlPlane();
  server = new ApiServer(controlPlane);
  await installDefinitions(server, customResourceDefinitions);
});

afterAll(async () => {
  await server?.close();
  await controlPlane?.stop();
});

const byKind = new Map<string, CrdManifest>(customResourceDefinitions.map((crd) => [crd.spec.names.kind, crd]));

function collection(kind: CrdKind): string {
  const definition = byKind.get(kind);
  if (!definition) throw new Error(`no definition of ${kind}`);
  const { group, names, scope } = definition.spec;
  return `/apis/${group}/v1/${scope === "Cluster" ? "" : "namespaces/default/"}${names.plural}`;
}

function create(kind: CrdKind, object: object): Promise<Answer> {
  return server.send("POST", `${collection(kind)}?fieldValidation=Strict`, object);
}

let created = 0;

/** Creates the object before the change under a name of its own, then replaces it. */
async function change(kind: CrdKind, oldSpec: object, spec: object): Promise<Answer> {
  created += 1;
  const name = `change-${created}`;
  const first = await create(kind, manifestOf(kind, oldSpec, name));
  expect(first.message).toBe("");
  const { resourceVersion } = first.body["metadata"] as { resourceVersion: string };
  const next = { ...manifestOf(kind, spec), metadata: { name, resourceVersion } };
  return server.send("PUT", `${collection(kind)}/${name}?fieldValidation=Strict`, next);
}

describe("definitions in a real API server", () => {
  it.each(customResourceDefinitions.map(({ metadata }) => metadata.name))(
    "serves %s without complaint",
    async (name) => {
      const { body } = await server.send("GET", `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${name}`);
      const conditions = conditionsOf(body).map(({ type, status }) => `${type}=${status}`);
      expect(conditions.sort()).toEqual(["Established=True", "NamesAccepted=True"]);
    },
  );

  it.each(crdKinds)("stores the smallest %s with the defaults that we compute", async (kind) => {
    const manifest = manifestOf(kind, minimalSpecs[kind]);
    const answer = await create(kind, manifest);
    expect(answer.message).toBe("");
    expect(answer.body["spec"]).toEqual(applySchemaDefaults(kind, manifest)["spec"]);
  });

  it.each([
    ["volume snapshots", { backup: { volumeSnapshot: {} } }],
    ["the timing of the lease", { primaryLease: {} }],
    ["probes", { probes: { liveness: { isolationCheck: {} } } }],
    ["slots of users", { replicationSlots: { synchronizeReplicas: {} } }],
    [
      "roles, Services and plugins",
      {
        managed: { roles: [{ name: "a" }], services: { additional: [{ selectorType: "r", serviceTemplate: {} }] } },
        plugins: [{ name: "p" }],
      },
    ],
    [
      "core types",
      {
        env: [
          { name: "A", valueFrom: { configMapKeyRef: { key: "k" } } },
          { name: "B", valueFrom: { secretKeyRef: { key: "k" } } },
        ],
        envFrom: [{ configMapRef: {} }],
        projectedVolumeTemplate: { sources: [{ secret: {} }, { configMap: {} }] },
      },
    ],
    ["nulls", { logLevel: null, imageName: null, replicationSlots: null }],
  ])("fills in the defaults of %s as we do", async (_title, fields) => {
    const manifest = manifestOf("Cluster", { ...minimalSpecs.Cluster, ...fields }, "defaults");
    const answer = await server.send("POST", `${collection("Cluster")}?dryRun=All&fieldValidation=Strict`, manifest);
    expect(answer.message).toBe("");
    expect(answer.body["spec"]).toEqual(applySchemaDefaults("Cluster", manifest)["spec"]);
  });

  it.each(celCases.map((one) => ({ ...one, title: `${one.kind} ${one.path}: ${one.message}` })))(
    "refuses $title",
    async ({ kind, path, message, spec, oldSpec, alsoBySchema }) => {
      const answer = oldSpec ? await change(kind, oldSpec, spec) : await create(kind, manifestOf(kind, spec, "bad"));
      expect(answer.status).toBe(422);
      expect(answer.message).toContain(path);
      expect(answer.message).toContain(alsoBySchema ? "Duplicate value" : message);
    },
  );

  it("refuses a rule that cannot be evaluated in the words that we use", async () => {
    const role = manifestOf("DatabaseRole", { ...minimalSpecs.DatabaseRole, clientCertificate: {} }, "bad");
    const [issue] = evaluateCelRules("DatabaseRole", role);
    const answer = await create("DatabaseRole", role);
    expect(answer.status).toBe(422);
    expect(answer.message).toContain(issue?.message);
  });
});

describe("what a real API server and our validators refuse alike", () => {
  it.each([
    ["an unknown field", { instance: 1 }],
    ["an unknown field of a core type", { resources: { limit: {} } }],
    ["a text for a number", { instances: "1" }],
    ["a fraction", { instances: 1.5 }],
    ["too few instances", { instances: 0 }],
    ["a delay beyond 32 bits", { startDelay: 2 ** 31 }],
    ["a word that is not on the list", { logLevel: "loud" }],
    ["a retention policy without a unit", { backup: { retentionPolicy: "30" } }],
    ["an empty text", { replica: { source: "" } }],
    ["a missing field", { externalClusters: [{}] }],
    ["null in a list", { env: [null] }],
    ["a fraction as a quantity", { resources: { limits: { cpu: 1.5 } } }],
    ["a quantity that is none", { resources: { limits: { cpu: "one" } } }],
    ["a day that is none", { managed: { roles: [{ name: "a", validUntil: "2026-02-30T00:00:00Z" }] } }],
    ["a time without a zone", { managed: { roles: [{ name: "a", validUntil: "2026-01-30T00:00:00" }] } }],
    [
      "two items with one key",
      {
        podSelectorRefs: [
          { name: "a", selector: {} },
          { name: "a", selector: {} },
        ],
      },
    ],
    ["a large WAL segment", { bootstrap: { initdb: { walSegmentSize: 2048 } } }],
  ])("%s", async (_title, fields) => {
    const manifest = manifestOf("Cluster", { ...minimalSpecs.Cluster, ...fields }, "alike");
    const issues = validateAgainstSchema("Cluster", manifest);
    const answer = await server.send("POST", `${collection("Cluster")}?dryRun=All&fieldValidation=Strict`, manifest);
    expect(issues.map(({ path }) => path)).toHaveLength(1);
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(answer.message).toContain(issues[0]?.path);
  });

  it.each([
    ["quantities as numbers and as text", { resources: { limits: { cpu: 2, memory: "1.5Gi" } } }],
    ["a time with an offset", { managed: { roles: [{ name: "a", validUntil: "2026-01-30T00:00:00.5+02:00" }] } }],
    [
      "synchronous replication without a word on durability",
      { postgresql: { synchronous: { method: "any", number: 1 } } },
    ],
  ])("but not %s", async (_title, fields) => {
    const manifest = manifestOf("Cluster", { ...minimalSpecs.Cluster, ...fields }, "alike");
    expect(validateAgainstSchema("Cluster", manifest)).toEqual([]);
    expect(evaluateCelRules("Cluster", manifest)).toEqual([]);
    const answer = await server.send("POST", `${collection("Cluster")}?dryRun=All&fieldValidation=Strict`, manifest);
    expect(answer.message).toBe("");
  });
});

describe("what kubectl shows and does", () => {
  it("prints a cluster's columns, filled from its status", async () => {
    await create("Cluster", manifestOf("Cluster", minimalSpecs.Cluster, "columns"));
    await server.send("PATCH", `${collection("Cluster")}/columns/status`, {
      status: { instances: 3, readyInstances: 2, phase: "Cluster in healthy state", currentPrimary: "columns-1" },
    });
    const [header, row] = (await controlPlane.kubectl(["get", "cluster", "columns"])).trim().split("\n");
    expect(header?.split(/\s{2,}/).map((word) => word.trim())).toEqual([
      "NAME",
      "AGE",
      "INSTANCES",
      "READY",
      "STATUS",
      "PRIMARY",
    ]);
    expect(row).toMatch(/^columns\s+\d+s\s+3\s+2\s+Cluster in healthy state\s+columns-1\s*$/);
  });

  it.each([
    ["backup", ["AGE", "CLUSTER", "METHOD", "PHASE", "ERROR"]],
    ["scheduledbackup", ["AGE", "CLUSTER", "LAST BACKUP"]],
    ["pooler", ["AGE", "CLUSTER", "TYPE", "PHASE"]],
    ["database", ["AGE", "CLUSTER", "PG NAME", "APPLIED", "MESSAGE"]],
    ["databaserole", ["AGE", "CLUSTER", "PG NAME", "APPLIED", "MESSAGE"]],
    ["publication", ["AGE", "CLUSTER", "PG NAME", "APPLIED", "MESSAGE"]],
    ["subscription", ["AGE", "CLUSTER", "PG NAME", "APPLIED", "MESSAGE"]],
    ["imagecatalog", ["AGE"]],
    ["clusterimagecatalog", ["AGE"]],
    ["failoverquorum", ["AGE"]],
    ["objectstore", ["AGE"]],
  ])("prints the columns of %s", async (resource, columns) => {
    const [header] = (await controlPlane.kubectl(["get", resource, "test"])).split("\n");
    expect(header?.trim().split(/\s{2,}/)).toEqual(["NAME", ...columns]);
  });

  it.each([
    ["cluster", "spec.instances"],
    ["pooler", "spec.instances"],
  ])("scales a %s", async (resource, field) => {
    await controlPlane.kubectl(["scale", resource, "test", "--replicas=5"]);
    const output = await controlPlane.kubectl(["get", resource, "test", "-o", `jsonpath={.${field}}`]);
    expect(output).toBe("5");
  });

  it("gives autoscalers the selector of a cluster", async () => {
    await server.send("PATCH", `${collection("Cluster")}/test/status`, {
      status: { selector: "cnpg.io/cluster=test" },
    });
    const { body } = await server.send("GET", `${collection("Cluster")}/test/scale`);
    expect(body["status"]).toMatchObject({ selector: "cnpg.io/cluster=test" });
  });

  it("keeps status out of an ordinary write and spec out of a status write", async () => {
    await create("Cluster", { ...manifestOf("Cluster", minimalSpecs.Cluster, "split"), status: { phase: "mine" } });
    const path = `${collection("Cluster")}/split`;
    expect((await server.send("GET", path)).body["status"]).toBeUndefined();
    await server.send("PATCH", `${path}/status`, { spec: { instances: 9 }, status: { phase: "theirs" } });
    const { body } = await server.send("GET", path);
    expect(body["spec"]).toMatchObject({ instances: 1 });
    expect(body["status"]).toEqual({ phase: "theirs" });
  });

  it("explains a field in our words", async () => {
    expect(await controlPlane.kubectl(["explain", "cluster.spec.instances"])).toContain(
      "Instances to run, the primary included.",
    );
  });
});
