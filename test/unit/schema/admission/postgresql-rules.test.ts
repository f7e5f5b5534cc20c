import { describe, expect, test } from "vitest";
import { type ClusterParts, refusals, type Spec } from "./a-cluster.ts";

const parameters = (map: Record<string, string>, more: Spec = {}): ClusterParts => ({
  spec: { ...more, postgresql: { ...more.postgresql, parameters: map } },
});
const at = (name: string) => `spec.postgresql.parameters.${name}`;
const synchronous = (section: object, more: Spec = {}): ClusterParts => ({
  spec: { ...more, postgresql: { synchronous: { method: "any", number: 1, ...section } } },
});
const extension = (...list: object[]): ClusterParts => ({
  spec: {
    postgresql: { extensions: list.map((entry) => ({ name: "e", image: { reference: "i" }, ...entry })) as never },
  },
});
const extensionPath = "spec.postgresql.extensions[0]";
const reserved = "the usage of this environment variable is reserved for the operator";
const logical = "spec.replicationSlots.highAvailability.synchronizeLogicalDecoding";
const slots = (major: number, map: Record<string, string>): ClusterParts => ({
  spec: {
    imageName: `pg:${major}`,
    replicationSlots: { highAvailability: { enabled: true, synchronizeLogicalDecoding: true } },
    postgresql: { parameters: map },
  },
});
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
    "parameter name",
    parameters({ work_mem: "8MB", "my.thing": "x" }),
    parameters({ "a.b.c": "x" }),
    [
      `${at("a.b.c")}: Invalid value: "a.b.c": must be a valid PostgreSQL configuration parameter name (a GUC name, optionally namespaced with a single dot)`,
    ],
  ],
  [
    "fixed parameter",
    parameters({ port: "5432", log_destination: "csvlog" }),
    parameters({ port: "5433", hba_file: "/x" }),
    [
      `${at("hba_file")}: Invalid value: "/x": Can't set fixed configuration parameter`,
      `${at("port")}: Invalid value: "5433": Can't set fixed configuration parameter`,
    ],
  ],
  [
    "known WAL level",
    parameters({ wal_level: "replica" }),
    parameters({ wal_level: "archive" }),
    [
      `${at("wal_level")}: Invalid value: "archive": unrecognized \`wal_level\` value - allowed values: \`logical\`, \`replica\`, \`minimal\``,
    ],
  ],
  [
    "minimal WAL",
    {
      annotations: { "cnpg.io/skipWalArchiving": "enabled" },
      spec: { instances: 1, postgresql: { parameters: { wal_level: "minimal", max_wal_senders: "0" } } },
    },
    parameters({ wal_level: "minimal", max_wal_senders: "0" }),
    [
      `${at("wal_level")}: Invalid value: "minimal": \`wal_level\` should be set at \`logical\` or \`replica\` when \`archive_mode\` is \`on\`, '.instances' field is greater than 1, or this is a replica cluster`,
    ],
  ],
  [
    "no senders with minimal WAL",
    parameters({ max_wal_senders: "10" }),
    {
      annotations: { "cnpg.io/skipWalArchiving": "enabled" },
      spec: { instances: 1, postgresql: { parameters: { wal_level: "minimal", max_wal_senders: "5" } } },
    },
    [
      `${at("max_wal_senders")}: Invalid value: "5": \`max_wal_senders\` should be set at \`0\` when \`wal_level\` is \`minimal\``,
    ],
  ],
  [
    "shared buffers",
    parameters({ shared_buffers: "16384" }),
    parameters({ shared_buffers: "128mb" }),
    [
      `${at("shared_buffers")}: Invalid value: "128mb": Invalid value for configuration parameter shared_buffers. More info on accepted values format: https://www.postgresql.org/docs/current/config-setting.html#CONFIG-SETTING-NAMES-VALUES`,
    ],
  ],
  ...["hot_standby_feedback", "sync_replication_slots", "wal_log_hints"].map(
    (name): [string, ClusterParts, ClusterParts, string[]] => [
      name,
      parameters({ [name]: "yes" }),
      parameters({ [name]: "enabled" }),
      [`${at(name)}: Invalid value: "enabled": invalid \`${name}\` value. Must be a postgres boolean`],
    ],
  ),
  [
    "hints for rewinding",
    parameters({ wal_log_hints: "off" }, { instances: 1 }),
    parameters({ wal_log_hints: "off" }),
    [`${at("wal_log_hints")}: Invalid value: "off": \`wal_log_hints\` must be set to \`on\` when \`instances\` > 1`],
  ],
  [
    "WAL sizes",
    parameters({ min_wal_size: "2GB", max_wal_size: "4GB" }),
    parameters({ min_wal_size: "much" }),
    [`${at("min_wal_size")}: Invalid value: "much": Invalid value for configuration parameter min_wal_size`],
  ],
  [
    "order of WAL sizes",
    parameters({ max_wal_size: "100MB" }),
    parameters({ min_wal_size: "1GB" }),
    [
      `${at("min_wal_size")}: Invalid value: "1GB": Invalid vale. Parameter min_wal_size (default 80MB) should be smaller than parameter max_wal_size (default 1GB)`,
    ],
  ],
  [
    "WAL sizes and the WAL volume",
    parameters({ max_wal_size: "2GB" }, { walStorage: { size: "3Gi" } }),
    parameters({ max_wal_size: "2GB" }, { walStorage: { size: "2Gi" } }),
    [
      `${at("max_wal_size")}: Invalid value: "2GB": Invalid value. Parameter max_wal_size (default 1GB) should be smaller than WAL volume size`,
    ],
  ],
  [
    "old and new synchronous settings",
    synchronous({}),
    synchronous({}, { maxSyncReplicas: 1 }),
    [
      'spec.postgresql.synchronous: Invalid value: {"method":"any","number":1,"dataDurability":"required"}: Can\'t have both legacy synchronous replica configuration and new one',
    ],
  ],
  [
    "number of synchronous replicas",
    synchronous({ number: 3, standbyNamesPre: ["x"] }),
    synchronous({ number: 3 }),
    [
      'spec.postgresql.synchronous: Invalid value: {"method":"any","number":3,"dataDurability":"required"}: Invalid synchronous configuration: the number of synchronous replicas must be less than the total number of instances and the provided standby names.',
    ],
  ],
  [
    "quorum and foreign standbys",
    synchronous({ failoverQuorum: true }),
    synchronous({ failoverQuorum: true, standbyNamesPost: ["x"] }),
    [
      'spec.postgresql.synchronous: Invalid value: {"method":"any","number":1,"failoverQuorum":true,"standbyNamesPost":["x"],"dataDurability":"required"}: Invalid failoverQuorum configuration: spec.postgresql.synchronous.number must be greater than the total number of instances in spec.postgresql.synchronous.standbyNamesPre and spec.postgresql.synchronous.standbyNamesPost to allow automatic failover.',
    ],
  ],
  [
    "quorum needs synchronous replication",
    { annotations: { "alpha.cnpg.io/failoverQuorum": "true" }, ...synchronous({}) },
    { annotations: { "alpha.cnpg.io/failoverQuorum": "true" } },
    [
      "spec.postgresql.synchronous: Required value: Invalid failoverQuorum configuration: synchronous replication configuration is required.",
    ],
  ],
  [
    "labels of the election constraint",
    { spec: { postgresql: { syncReplicaElectionConstraint: { enabled: true, nodeLabelsAntiAffinity: ["zone"] } } } },
    { spec: { postgresql: { syncReplicaElectionConstraint: { enabled: true } } } },
    [
      "spec.postgresql.syncReplicaElectionConstraint.nodeLabelsAntiAffinity: Invalid value: null: Can't enable syncReplicaConstraints without passing labels for comparison inside nodeLabelsAntiAffinity",
    ],
  ],
  [
    "LDAP server",
    { spec: { postgresql: { ldap: { server: "l", bindAsAuth: {} } } } },
    { spec: { postgresql: { ldap: { port: 389 } } } },
    [
      'spec.postgresql.ldap: Invalid value: {"port":389}: ldap server cannot be empty if any other ldap parameters are specified',
    ],
  ],
  [
    "LDAP method",
    { spec: { postgresql: { ldap: { server: "l", bindSearchAuth: {} } } } },
    { spec: { postgresql: { ldap: { server: "l", bindSearchAuth: {}, bindAsAuth: {} } } } },
    [
      'spec.postgresql.ldap: Invalid value: {"server":"l","bindSearchAuth":{},"bindAsAuth":{}}: only bind+search or bind method can be specified',
    ],
  ],
  [
    "excluded slots",
    { spec: { replicationSlots: { synchronizeReplicas: { enabled: true, excludePatterns: ["^a.*", "(?i)b"] } } } },
    {
      spec: { replicationSlots: { synchronizeReplicas: { enabled: true, excludePatterns: ["(", "ok", "(?!a)"] } } },
    },
    [
      'spec.replicationSlots.synchronizeReplicas.excludePatterns: Invalid value: ["(","(?!a)"]: Cannot configure synchronizeReplicas. Invalid regexes were found',
    ],
  ],
  [
    "logical slots before 17",
    slots(16, { "pg_failover_slots.synchronize_slot_names": "x", hot_standby_feedback: "on" }),
    slots(16, {}),
    [
      `${logical}: Invalid value: true: pg_failover_slots extension must be enabled to use synchronizeLogicalDecoding with Postgres versions < 17`,
    ],
  ],
  [
    "logical slots since 17",
    slots(17, { hot_standby_feedback: "on", sync_replication_slots: "on" }),
    slots(17, { hot_standby_feedback: "off" }),
    [
      `${at("hot_standby_feedback")}: Invalid value: "off": \`hot_standby_feedback\` must be enabled to enable \`${logical}\``,
      `${at("sync_replication_slots")}: Invalid value: "": either \`sync_replication_slots\` setting or pg_failover_slots extension must be enabled to enable \`${logical}\``,
    ],
  ],
  [
    "pg_failover_slots",
    parameters({ "pg_failover_slots.x": "1", hot_standby_feedback: "on" }),
    parameters({ "pg_failover_slots.x": "1" }, { replicationSlots: { highAvailability: { enabled: false } } }),
    [
      `${at("hot_standby_feedback")}: Invalid value: "": \`hot_standby_feedback\` must be enabled to use  extension`,
      'spec.replicationSlots.highAvailability: Invalid value: {"enabled":false,"slotPrefix":"_cnpg_"}: High Availability replication slots must be enabled',
    ],
  ],
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

const token = (content: unknown) => Buffer.from(JSON.stringify(content)).toString("base64");
const whole = {
  latestCheckpointTimelineID: "1",
  redoWalFile: "000000010000000000000003",
  databaseSystemIdentifier: "7",
  latestCheckpointREDOLocation: "0/3000028",
  timeOfLatestCheckpoint: "now",
  operatorVersion: "1.30.0",
};
const replica = (section: object, more: Spec = {}): ClusterParts => ({
  spec: {
    externalClusters: [{ name: "origin", connectionParameters: { host: "o" } }],
    bootstrap: { pg_basebackup: { source: "origin" } },
    ...more,
    replica: { source: "origin", ...section } as never,
  },
});

const replicaRows: [rule: string, good: ClusterParts, bad: ClusterParts, refusals: (string | RegExp)[]][] = [
  [
    "enabled or primary",
    replica({ enabled: true }),
    replica({ enabled: true, primary: "origin" }),
    ["spec.replica.enabled: Forbidden: replica mode enabled is not compatible with the primary field"],
  ],
  [
    "bootstrap of a new one",
    replica({ enabled: true }),
    replica({ enabled: true }, { bootstrap: { initdb: {} } }),
    [/^spec\.replica: Invalid value: .*: replica mode bootstrap is compatible only with pg_basebackup or recovery$/],
  ],
  [
    "bootstrap of an existing one",
    { ...replica({ enabled: true }, { bootstrap: { initdb: {} } }), resourceVersion: "1" },
    replica({ enabled: true }, { bootstrap: { initdb: {} } }),
    [/replica mode bootstrap is compatible only with/],
  ],
  [
    "known servers",
    replica({ self: "origin", primary: "origin" }),
    replica({ source: "x", self: "y", primary: "z" }),
    [
      'spec.replica.source: Invalid value: "x": External cluster x not found',
      'spec.replica.self: Invalid value: "y": External cluster y not found',
      'spec.replica.primary: Invalid value: "z": External cluster z not found',
    ],
  ],
  [
    "delay beside a token",
    replica({ enabled: false, promotionToken: token(whole) }),
    replica({ enabled: false, promotionToken: token(whole), minApplyDelay: "1h" }),
    ['spec.replica.minApplyDelay: Invalid value: "1h": minApplyDelay cannot be applied with a promotion token'],
  ],
  [
    "token of a replica",
    replica({ enabled: false, promotionToken: token(whole) }),
    replica({ enabled: true, promotionToken: token(whole) }),
    [/^spec\.replica\.promotionToken: Invalid value: .*: promotionToken is only allowed for primary clusters$/],
  ],
  [
    "form of the token",
    replica({ enabled: false }),
    replica({ enabled: false, promotionToken: "%" }),
    [/: Invalid promotionToken format: invalid promotion token \(Base64 decoding failed\)$/],
  ],
  [
    "content of the token",
    replica({ enabled: false }),
    replica({ enabled: false, promotionToken: token({ ...whole, redoWalFile: "" }) }),
    [/: Invalid promotionToken content: invalid promotion token \(\w+ is empty\)$/],
  ],
];

describe.each(replicaRows)("replica cluster: %s", (_rule, good, bad, expected) => {
  test("accepts", () => expect(refusals(good)).toEqual([]));
  test("refuses", () =>
    expect(refusals(bad)).toEqual(
      expected.map((text) => (typeof text === "string" ? text : expect.stringMatching(text))),
    ));
});
