import { describe, expect, test } from "vitest";
import { type ClusterParts, refusals, type Spec } from "./a-cluster.ts";

const parameters = (map: Record<string, string>, more: Spec = {}): ClusterParts => ({
  spec: { ...more, postgresql: { ...more.postgresql, parameters: map } },
});
const extension = (...list: object[]): ClusterParts => ({
  spec: {
    postgresql: { extensions: list.map((entry) => ({ name: "e", image: { reference: "i" }, ...entry })) as never },
  },
});
const extensionPath = "spec.postgresql.extensions[0]";
const reserved = "the usage of this environment variable is reserved for the operator";
const role = (...list: object[]): ClusterParts => ({ spec: { managed: { roles: list as never } } });
const service = (metadata: object, spec: object = {}): ClusterParts => ({
  spec: {
    managed: { services: { additional: [{ selectorType: "rw", serviceTemplate: { metadata, spec } }] } },
  },
});
const resources = (requests: Record<string, string>, limits: Record<string, string> = {}): ClusterParts => ({
  spec: { resources: { requests, limits } },
});

const rows: [rule: string, good: ClusterParts, bad: ClusterParts, refusals: string[]][] = [
  [
    "environment",
    { spec: { env: [{ name: "TZ", value: "UTC" }] } },
    { spec: { env: [{ name: "pgdata" }, { name: "CNPG_X" }, { name: "pod_name" }] } },
    [0, 1, 2].map((i) => `spec.env[${i}].name: Invalid value: "${["pgdata", "CNPG_X", "pod_name"][i]}": ${reserved}`),
  ],
  [
    "disabled Services",
    { spec: { managed: { services: { disabledDefaultServices: ["ro", "r"] } } } },
    { spec: { managed: { services: { disabledDefaultServices: ["rw"] } } } },
    ['spec.managed.services.disabledDefaultServices: Invalid value: "rw": service of type RW cannot be disabled.'],
  ],
  [
    "reserved Service name",
    service({ name: "public" }),
    service({ name: "db-any" }),
    [
      "spec.managed.services.additional[0]: Invalid value: \"db-any\": the service name: 'db-any' is reserved for operator use",
    ],
  ],
  [
    "Service selector",
    service({ name: "public" }, { type: "LoadBalancer" }),
    service({ name: "public" }, { selector: { a: "b" } }),
    ['spec.managed.services.additional[0]: Invalid value: {"a":"b"}: selector field is managed by the operator'],
  ],
  [
    "Service name",
    service({ name: "public" }),
    service({}),
    ['spec.managed.services.additional[0]: Invalid value: "": name is required'],
  ],
  [
    "different Service names",
    service({ name: "public" }),
    {
      spec: {
        managed: {
          services: {
            additional: ["a", "a"].map((name) => ({
              selectorType: "rw" as const,
              serviceTemplate: { metadata: { name } },
            })),
          },
        },
      },
    },
    ['spec.managed.services.additional: Invalid value: ["a","a"]: contains services with the same .metadata.name'],
  ],
  [
    "different role names",
    role({ name: "a" }, { name: "b" }),
    role({ name: "a" }, { name: "a" }),
    ['spec.managed.roles: Invalid value: "a": Role name is duplicate of another'],
  ],
  [
    "connection limit",
    role({ name: "a", connectionLimit: -1 }),
    role({ name: "a", connectionLimit: -2 }),
    ['spec.managed.roles: Invalid value: "a": Connection limit should be positive, unless defaulting to -1'],
  ],
  [
    "reserved roles",
    role({ name: "postgresx" }),
    role({ name: "postgres" }, { name: "cnpg_x" }, { name: "pg_x" }, { name: "streaming_replica" }),
    ["postgres", "cnpg_x", "pg_x", "streaming_replica"].map(
      (name) => `spec.managed.roles: Invalid value: "${name}": This role is reserved for operator use`,
    ),
  ],
  [
    "password of a role",
    role({ name: "a", passwordSecret: { name: "s" } }),
    role({ name: "a", passwordSecret: { name: "s" }, disablePassword: true }),
    ['spec.managed.roles: Invalid value: "a": This role both sets and disables a password'],
  ],
  [
    "limits",
    resources({ cpu: "500m", memory: "1Gi" }, { cpu: "0.5", memory: "1024Mi" }),
    resources(
      { cpu: "2", memory: "2Gi", "ephemeral-storage": "2Gi" },
      { cpu: "1", memory: "1Gi", "ephemeral-storage": "1Gi" },
    ),
    [
      'spec.resources.requests.cpu: Invalid value: "2": CPU request is greater than the limit',
      'spec.resources.requests.memory: Invalid value: "2Gi": Memory request is greater than the limit',
      'spec.resources.requests.storage: Invalid value: "2Gi": Ephemeral storage request is greater than the limit',
    ],
  ],
  [
    "huge pages",
    resources({ cpu: "1", "hugepages-2Mi": "64Mi" }, { "hugepages-2Mi": "64Mi" }),
    resources({ "hugepages-2Mi": "64Mi" }, { "hugepages-2Mi": "128Mi" }),
    [
      'spec.resources.requests.hugepages-2Mi: Invalid value: "64Mi": HugePages requests must equal the limits',
      "spec.resources: Forbidden: HugePages require cpu or memory",
    ],
  ],
  [
    "memory for the buffers",
    parameters({ shared_buffers: "16384" }, { resources: { requests: { memory: "128Mi" } } }),
    parameters({ shared_buffers: "1GB" }, { resources: { requests: { memory: "512Mi" } } }),
    ['spec.resources.requests: Invalid value: "512Mi": Memory request is lower than PostgreSQL `shared_buffers` value'],
  ],
  [
    "pod selectors",
    { spec: { podSelectorRefs: [{ name: "a", selector: { matchLabels: { x: "y" } } }] } },
    {
      spec: {
        podSelectorRefs: [
          { name: "a", selector: {} },
          { name: "a", selector: { matchExpressions: [{ key: "x", operator: "Like" }] } },
        ],
      },
    },
    [
      'spec.podSelectorRefs[1].name: Duplicate value: "a"',
      'spec.podSelectorRefs[1].selector: Invalid value: {"matchExpressions":[{"key":"x","operator":"Like"}]}: "Like" is not a valid label selector operator',
    ],
  ],
  [
    "pods in pg_hba",
    {
      spec: {
        podSelectorRefs: [{ name: "a", selector: {} }],
        postgresql: { pg_hba: [`host all all \${podselector:a} scram-sha-256`] },
      },
    },
    {
      spec: {
        podSelectorRefs: [{ name: "a", selector: {} }],
        postgresql: {
          pg_hba: [
            `host all all \${node:a} md5`,
            `host all all \${podselector:b} md5`,
            `\${podselector:a} \${podselector:a}`,
          ],
        },
      },
    },
    [
      `spec.postgresql.pg_hba[0]: Invalid value: "host all all \${node:a} md5": unknown descriptor type: node`,
      `spec.postgresql.pg_hba[1]: Invalid value: "host all all \${podselector:b} md5": pod selector not found: b`,
      `spec.postgresql.pg_hba[2]: Invalid value: "\${podselector:a} \${podselector:a}": at most one podselector reference is allowed per line`,
    ],
  ],
  [
    "extension names",
    extension({ name: "a" }, { name: "b" }),
    extension({ name: "" }, { name: "a_b" }, { name: "a_b" }, { name: "a-b" }),
    [
      `${extensionPath}.name: Invalid value: "": value cannot be empty`,
      'spec.postgresql.extensions[2].name: Duplicate value: "a_b"',
      'spec.postgresql.extensions[3].name: Invalid value: "a-b": extension name results in duplicate volume name "a-b" after sanitization (underscores are converted to hyphens)',
    ],
  ],
  [
    "extension image",
    {
      spec: {
        imageCatalogRef: { kind: "ImageCatalog", name: "c", major: 18 },
        postgresql: { extensions: [{ name: "e" }] },
      },
    },
    extension({ image: undefined }),
    [
      `${extensionPath}.image.reference: Invalid value: "": Image reference for extension \`e\` must be set when no image catalog is configured`,
    ],
  ],
  [
    "extension paths",
    extension({ bin_path: ["bin", "a/../b"], ld_library_path: ["lib"] }),
    extension({ bin_path: ["", "x", "x"], ld_library_path: ["a/../../b"] }),
    [
      `${extensionPath}.ld_library_path[0]: Invalid value: "a/../../b": path must not escape the extension directory`,
      `${extensionPath}.bin_path[0]: Invalid value: "": value cannot be empty`,
      `${extensionPath}.bin_path[2]: Duplicate value: "x"`,
    ],
  ],
  [
    "extension environment",
    extension({ env: [{ name: "HOME", value: `\${image_root}/x $\${literal}` }] }),
    extension({
      env: [
        { name: "PGX", value: "" },
        { name: "PATH", value: "" },
        { name: "A", value: `\${other}` },
        { name: "A", value: "" },
      ],
    }),
    [
      `${extensionPath}.env[0].name: Invalid value: "PGX": ${reserved}`,
      `${extensionPath}.env[1].name: Forbidden: PATH must be configured via bin_path`,
      `${extensionPath}.env[2].value: Invalid value: "\${other}": unsupported placeholder(s): \${other}; supported: \${image_root}`,
      `${extensionPath}.env[3].name: Duplicate value: "A"`,
    ],
  ],
];

describe.each(rows)("%s", (_rule, good, bad, expected) => {
  test("accepts", () => expect(refusals(good)).toEqual([]));
  test("refuses", () => expect(refusals(bad)).toEqual(expected));
});
