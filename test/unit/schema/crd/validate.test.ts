import { describe, expect, it } from "vitest";
import { crdKinds, type SchemaIssue, validateAgainstSchema } from "../../../../src/schema/crd/index.ts";
import { manifestOf, minimalSpecs } from "../../crds/minimal-specs.ts";

function issuesOf(fields: object): string[] {
  return describeAll(validateAgainstSchema("Cluster", manifestOf("Cluster", { ...minimalSpecs.Cluster, ...fields })));
}

function describeAll(issues: readonly SchemaIssue[]): string[] {
  return issues.map(({ path, rule, message }) => `${path} (${rule}): ${message}`);
}

describe("validateAgainstSchema", () => {
  it.each(crdKinds)("accepts the smallest %s", (kind) => {
    expect(validateAgainstSchema(kind, manifestOf(kind, minimalSpecs[kind]))).toEqual([]);
  });

  it.each([
    [
      "a misspelt field",
      { instance: 3 },
      "spec.instance (unknownField): there is no such field: check its spelling and its place",
    ],
    [
      "a misspelt field of a core type",
      { resources: { limit: {} } },
      "spec.resources.limit (unknownField): there is no such field: check its spelling and its place",
    ],
    ["a missing field of an item", { externalClusters: [{}] }, "spec.externalClusters[0].name (required): is required"],
    ["a text for a number", { instances: "3" }, "spec.instances (type): must be integer, not string"],
    ["a fraction", { instances: 1.5 }, "spec.instances (type): must be integer, not number"],
    ["a list for an object", { storage: [] }, "spec.storage (type): must be object, not array"],
    ["null in a list", { env: [null] }, "spec.env[0] (type): must be object, not null"],
    [
      "a number among texts",
      { postgresql: { parameters: { jit: 1 } } },
      "spec.postgresql.parameters.jit (type): must be string, not integer",
    ],
    ["too few instances", { instances: 0 }, "spec.instances (minimum): must be at least 1, not 0"],
    [
      "a delay beyond 32 bits",
      { startDelay: 2 ** 31 },
      "spec.startDelay (maximum): must be at most 2147483647, not 2147483648",
    ],
    [
      "a large WAL segment",
      { bootstrap: { initdb: { walSegmentSize: 2048 } } },
      "spec.bootstrap.initdb.walSegmentSize (maximum): must be at most 1024, not 2048",
    ],
    [
      "a word that is not on the list",
      { logLevel: "loud" },
      'spec.logLevel (enum): must be one of error, warning, info, debug, trace, not "loud"',
    ],
    [
      "a retention policy without a unit",
      { backup: { retentionPolicy: "30" } },
      'spec.backup.retentionPolicy (pattern): "30" must match ^[1-9][0-9]*[dwm]$',
    ],
    [
      "an empty source",
      { replica: { source: "" } },
      "spec.replica.source (minLength): must have at least 1 characters",
    ],
    [
      "a long service account name",
      { serviceAccountName: "a".repeat(254) },
      "spec.serviceAccountName (maxLength): must have at most 253 characters, not 254",
    ],
    [
      "a time that is none",
      { managed: { roles: [{ name: "a", validUntil: "2026-02-30T00:00:00Z" }] } },
      'spec.managed.roles[0].validUntil (format): "2026-02-30T00:00:00Z" is not a time in RFC 3339 form, such as 2026-01-31T12:00:00Z',
    ],
    [
      "two items with one key",
      {
        podSelectorRefs: [
          { name: "a", selector: {} },
          { name: "a", selector: {} },
        ],
      },
      "spec.podSelectorRefs (duplicate): must not hold two items with the same name",
    ],
    [
      "two ports that differ by a default only",
      {
        managed: {
          services: {
            additional: [
              {
                selectorType: "rw",
                serviceTemplate: { spec: { ports: [{ port: 1 }, { port: 1, protocol: "TCP" }] } },
              },
            ],
          },
        },
      },
      "spec.managed.services.additional[0].serviceTemplate.spec.ports (duplicate): must not hold two items with the same port and protocol",
    ],
    [
      "a fraction as a quantity",
      { resources: { limits: { cpu: 1.5 } } },
      "spec.resources.limits.cpu (type): must be integer or string, not number",
    ],
    [
      "a key that is no name",
      { inheritedMetadata: { labels: { "a.b/c": 1 } } },
      "spec.inheritedMetadata.labels[a.b/c] (type): must be string, not integer",
    ],
  ])("refuses %s", (_title, fields, expected) => {
    expect(issuesOf(fields)).toEqual([expected]);
  });

  it.each([
    ["quantities as numbers and as text", { resources: { limits: { cpu: 2, memory: "1.5Gi" } } }],
    [
      "ports by number and by name",
      { managed: { services: { additional: [serviceOn(5432), serviceOn("postgres")] } } },
    ],
    ["any depth of labels in the metadata", { serviceAccountTemplate: { metadata: { labels: { "a.b/c": "d" } } } }],
    ["fields of undefined", { imageName: undefined, affinity: undefined }],
    ["a field that is called description", { description: "orders" }],
  ])("accepts %s", (_title, fields) => {
    expect(issuesOf(fields)).toEqual([]);
  });

  it("names everything that is wrong, in the order of the object", () => {
    expect(issuesOf({ instances: 0, logLevel: 1, backups: {} }).map((line) => line.split(" ")[0])).toEqual([
      "spec.instances",
      "spec.logLevel",
      "spec.backups",
    ]);
  });

  it("asks for a spec", () => {
    expect(describeAll(validateAgainstSchema("Cluster", manifestOf("Cluster", undefined)))).toEqual([
      "spec (required): is required",
    ]);
  });

  it("bounds the images of a catalog", () => {
    const images = Array.from({ length: 9 }, (_, index) => ({ major: 10 + index, image: "pg" }));
    expect(describeAll(validateAgainstSchema("ImageCatalog", manifestOf("ImageCatalog", { images })))).toEqual([
      "spec.images (maxItems): must have at most 8 items, not 9",
    ]);
    expect(describeAll(validateAgainstSchema("ImageCatalog", manifestOf("ImageCatalog", { images: [] })))).toEqual([
      "spec.images (minItems): must have at least 1 items",
    ]);
  });

  it("checks the status as well", () => {
    const backup = { ...manifestOf("Backup", minimalSpecs.Backup), status: { backupLabelFile: "?" } };
    expect(describeAll(validateAgainstSchema("Backup", backup))).toEqual([
      'status.backupLabelFile (format): "?" is not base64 text',
    ]);
  });
});

function serviceOn(targetPort: string | number): object {
  return { selectorType: "rw", serviceTemplate: { spec: { ports: [{ port: 5432, targetPort }] } } };
}
