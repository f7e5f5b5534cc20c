import { App, Chart, Testing } from "cdk8s";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { Cluster, type ClusterProps } from "../../../constructs/index.ts";

function chart(): Chart {
  return new Chart(Testing.app(), "test");
}

function synthCluster(props: ClusterProps, id = "pg"): Record<string, unknown> {
  const scope = chart();
  new Cluster(scope, id, props);
  return Testing.synth(scope)[0];
}

describe("Cluster", () => {
  test("writes its name and namespace exactly as given", () => {
    const object = synthCluster({ name: "orders", namespace: "shop", instances: 3, storage: "10Gi" });
    expect(object).toEqual({
      apiVersion: "postgresql.cnpg.io/v1",
      kind: "Cluster",
      metadata: { name: "orders", namespace: "shop" },
      spec: { instances: 3, storage: { size: "10Gi" } },
    });
  });

  test("writes one instance when nothing else is asked for, since kubectl wants the field", () => {
    expect(synthCluster({ storage: "1Gi" })["spec"]).toEqual({ instances: 1, storage: { size: "1Gi" } });
  });

  test("takes its id as the name", () => {
    expect(synthCluster({ storage: "1Gi" }, "ledger")["metadata"]).toEqual({ name: "ledger" });
  });

  test("passes free-form parts, quantities and unknown orderings of the API through unchanged", () => {
    const spec = {
      instances: 1,
      storage: {
        size: "1Gi",
        pvcTemplate: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: 5 } } },
      },
      resources: { limits: { cpu: 2, memory: "1Gi" }, requests: { cpu: "500m" } },
      managed: {
        services: {
          additional: [
            {
              selectorType: "rw",
              serviceTemplate: {
                metadata: { name: "outside" },
                spec: { type: "LoadBalancer", ports: [{ port: 5432 }] },
              },
            },
          ],
        },
      },
      env: [{ name: "TZ", value: "UTC" }],
      affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{}] } } },
    } as const;
    expect(
      synthCluster({ spec: structuredClone(spec) as unknown as NonNullable<ClusterProps["spec"]> })["spec"],
    ).toEqual(spec);
  });

  test("leaves out empty lists and objects that mean nothing, and no other", () => {
    const spec = {
      postgresql: { pg_hba: [], pg_ident: [], parameters: {} },
      resources: {},
      env: [],
      externalClusters: [],
      managed: { services: { disabledDefaultServices: [] } },
      affinity: { nodeAffinity: {} },
    };
    expect(synthCluster({ storage: "1Gi", spec })["spec"]).toEqual({
      instances: 1,
      storage: { size: "1Gi" },
      managed: { services: { disabledDefaultServices: [] } },
      affinity: { nodeAffinity: {} },
    });
    const kept = synthCluster({ storage: "1Gi", parameters: { work_mem: "4MB" }, spec })["spec"];
    expect(kept).toMatchObject({ postgresql: { parameters: { work_mem: "4MB" } } });
    expect((kept as { postgresql: object }).postgresql).toEqual({ parameters: { work_mem: "4MB" } });
  });

  test("lets short props win over the same fields of the passed spec and keeps the rest of them", () => {
    const object = synthCluster({
      storage: "2Gi",
      parameters: { work_mem: "64MB" },
      spec: {
        storage: { size: "1Gi" },
        postgresql: { parameters: { max_connections: "50" }, pg_hba: ["host all all all md5"] },
      },
    });
    expect(object["spec"]).toMatchObject({
      storage: { size: "2Gi" },
      postgresql: { parameters: { max_connections: "50", work_mem: "64MB" }, pg_hba: ["host all all all md5"] },
    });
  });

  test.each(["1.1", "1.2"] as const)("writes parameter values as text for YAML %s readers", (version) => {
    const app = new App();
    const scope = new Chart(app, "test");
    const parameters = {
      effective_io_concurrency: 200,
      cpu_tuple_cost: 0.03,
      work_mem: "64MB",
      jit: false,
      huge_pages: "off",
    };
    new Cluster(scope, "pg", { storage: "1Gi", parameters });
    const object = parse(app.synthYaml(), { version }) as { spec: { postgresql: { parameters: object } } };
    expect(object.spec.postgresql.parameters).toEqual({
      effective_io_concurrency: "200",
      cpu_tuple_cost: "0.03",
      work_mem: "64MB",
      jit: "false",
      huge_pages: "off",
    });
  });
});

describe("Cluster at synth", () => {
  const wrong: readonly [string, ClusterProps, RegExp][] = [
    ["no instances", { instances: 0, storage: "1Gi" }, /Cluster "pg": spec\.instances/],
    [
      "an image and a catalog",
      {
        storage: "1Gi",
        image: "localhost/postgresql:17",
        spec: { imageCatalogRef: { apiGroup: "postgresql.cnpg.io", kind: "ImageCatalog", name: "c", major: 17 } },
      },
      /Cluster "pg": spec: .*imageName/,
    ],
    ["a field that does not exist", { storage: "1Gi", spec: { storag: {} } as object }, /Cluster "pg": spec\.storag/],
    ["a volume size that is none", { storage: "1Gigabyte" }, /Cluster "pg": spec\.storage\.size/],
    ["a name that is too long", { name: "n".repeat(51), storage: "1Gi" }, /maximum length of a cluster name is 50/],
    [
      "a parameter that is not the user's",
      { storage: "1Gi", parameters: { port: 5433 } },
      /Cluster "pg": spec\.postgresql\.parameters\.port/,
    ],
  ];

  test.each(wrong)("refuses %s, naming object, field and rule", (_what, props, says) => {
    expect(new Cluster(chart(), "pg", props).node.validate().join("\n")).toMatch(says);
  });

  test("lets a wrong object pass when the check is switched off", () => {
    const cluster = new Cluster(chart(), "pg", { instances: 0, validate: false });
    expect(cluster.node.validate()).toEqual([]);
  });
});
