import { describe, expect, test } from "vitest";
import { type ClusterParts, refusals, type Spec } from "./a-cluster.ts";

const parameters = (map: Record<string, string>, more: Spec = {}): ClusterParts => ({
  spec: { ...more, postgresql: { ...more.postgresql, parameters: map } },
});
const at = (name: string) => `spec.postgresql.parameters.${name}`;
const synchronous = (section: object, more: Spec = {}): ClusterParts => ({
  spec: { ...more, postgresql: { synchronous: { method: "any", number: 1, ...section } } },
});
const logical = "spec.replicationSlots.highAvailability.synchronizeLogicalDecoding";
const slots = (major: number, map: Record<string, string>): ClusterParts => ({
  spec: {
    imageName: `pg:${major}`,
    replicationSlots: { highAvailability: { enabled: true, synchronizeLogicalDecoding: true } },
    postgresql: { parameters: map },
  },
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
    parameters({ port: "5432", log_destination: "csvlog", ssl_ecdh_curve: "X25519" }),
    parameters({ port: "5433", ssl_cert_file: "/y", hba_file: "/x" }),
    [
      `${at("hba_file")}: Invalid value: "/x": Can't set fixed configuration parameter`,
      `${at("port")}: Invalid value: "5433": Can't set fixed configuration parameter`,
      `${at("ssl_cert_file")}: Invalid value: "/y": Can't set fixed configuration parameter`,
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
];

describe.each(rows)("%s", (_rule, good, bad, expected) => {
  test("accepts", () => expect(refusals(good)).toEqual([]));
  test("refuses", () => expect(refusals(bad)).toEqual(expected));
});
