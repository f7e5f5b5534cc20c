import { describe, expect, test } from "vitest";
import type { Backup } from "../../../../src/api/generated/backup.ts";
import type { Database } from "../../../../src/api/generated/database.ts";
import type { Pooler } from "../../../../src/api/generated/pooler.ts";
import type { ScheduledBackup } from "../../../../src/api/generated/scheduledbackup.ts";
import { checkSchedule } from "../../../../src/schema/admission/cron-syntax.ts";
import {
  backupWarnings,
  databaseWarnings,
  formatFieldIssue,
  formatRefusal,
  poolerWarnings,
  scheduledBackupWarnings,
  validateBackup,
  validateDatabase,
  validateMadeBackups,
  validatePooler,
  validateScheduledBackup,
} from "../../../../src/schema/admission/index.ts";

const apiVersion = "postgresql.cnpg.io/v1";
const disabled = { "cnpg.io/validation": "disabled" };
const aBackup = (spec: Partial<Backup["spec"]>, annotations: Record<string, string> = {}): Backup => ({
  apiVersion,
  kind: "Backup",
  metadata: { name: "b", annotations },
  spec: { cluster: { name: "db" }, ...spec },
});
const aSchedule = (schedule: string, spec: Partial<ScheduledBackup["spec"]> = {}): ScheduledBackup => ({
  apiVersion,
  kind: "ScheduledBackup",
  metadata: { name: "s" },
  spec: { cluster: { name: "db" }, schedule, ...spec },
});
const aDatabase = (spec: object): Database => ({
  apiVersion,
  kind: "Database",
  metadata: { name: "d" },
  spec: { cluster: { name: "db" }, name: "d", owner: "o", ...spec },
});
const aPooler = (pgbouncer: object | undefined, spec: object = {}, name = "p"): Pooler =>
  ({
    apiVersion,
    kind: "Pooler",
    metadata: { name, namespace: "shop" },
    spec: { cluster: { name: "db" }, pgbouncer, ...spec },
  }) as Pooler;

describe("Backup", () => {
  const missing =
    'spec.method: Invalid value: "volumeSnapshot": Cannot use volumeSnapshot backup method due to missing VolumeSnapshot CRD. If you installed the CRD after having started the operator, please restart it to enable VolumeSnapshot support';
  test.each<[string, Backup, boolean, string[]]>([
    ["the default", aBackup({}), false, []],
    ["snapshots", aBackup({ method: "volumeSnapshot", online: true }), true, []],
    ["snapshots without their API", aBackup({ method: "volumeSnapshot" }), false, [missing]],
    [
      "online for the store",
      aBackup({ online: true, onlineConfiguration: {} }),
      true,
      [
        "spec.online: Invalid value: true: Online parameter can be specified only if the backup method is volumeSnapshot",
        "spec.onlineConfiguration: Invalid value: {}: OnlineConfiguration parameter can be specified only if the backup method is volumeSnapshot",
      ],
    ],
    ["a plugin", aBackup({ method: "plugin", pluginConfiguration: { name: "p" } }), false, []],
    [
      "a plugin without a name",
      aBackup({ method: "plugin" }),
      false,
      ["spec.pluginConfiguration: Invalid value: null: cannot be empty when the backup method is plugin"],
    ],
    ["a deadline", aBackup({}, { "cnpg.io/volumeSnapshotDeadline": "10" }), false, []],
    [
      "a wrong deadline",
      aBackup({}, { "cnpg.io/volumeSnapshotDeadline": "10m" }),
      false,
      ['metadata.annotations.cnpg.io/volumeSnapshotDeadline: Invalid value: "10m": must be an integer'],
    ],
    ["anything when validation is off", aBackup({ method: "plugin" }, disabled), false, []],
  ])("%s", (_case, backup, volumeSnapshots, expected) => {
    expect(validateBackup(backup, { volumeSnapshots }).map(formatFieldIssue)).toEqual(expected);
  });

  test("warns when validation is off", () => {
    expect(backupWarnings(aBackup({}, disabled))).toHaveLength(1);
  });
});

describe("ScheduledBackup", () => {
  test.each(["0 0 0 * * *", "0 30 8 1-15/2 JAN,jul mon-FRI", "*/10 ? * ? * 0", "0 0 3 * *", "@daily", "@every 1h30m"])(
    "takes %s",
    (schedule) => {
      expect(checkSchedule(schedule)).toBeNull();
      expect(validateScheduledBackup(aSchedule(schedule), { volumeSnapshots: false })).toEqual([]);
    },
  );

  test.each([
    ["", /5 to 6 fields, found 0/],
    ["0 0 * *", /found 4/],
    ["0 0 0 * * * *", /found 7/],
    ["60 0 0 * * *", /second is above its maximum/],
    ["61 * * * * *", /second is above/],
    ["0 0 24 * * *", /hour is above/],
    // A crontab's "Sundays at one": its fields are read as seconds, minutes and so on.
    ["0 1 * * 0", /month is below/],
    ["0 0 0 0 * *", /day of month is below/],
    ["0 0 0 * * 7", /day of week is above/],
    ["0 0 0 * foo *", /failed to parse month/],
    ["0 5-1 0 * * *", /minute begins after its end/],
    ["0 */0 0 * * *", /step of minute/],
    ["0 1-2-3 0 * * *", /too many hyphens/],
    ["0 1/2/3 0 * * *", /too many slashes/],
    ["@often", /unrecognized descriptor/],
    ["@every soon", /failed to parse duration/],
  ])("refuses %j", (schedule, problem) => {
    const [issue, ...rest] = validateScheduledBackup(aSchedule(schedule), { volumeSnapshots: false });
    expect(rest).toEqual([]);
    expect(issue).toMatchObject({ path: "spec.schedule", kind: "Invalid", value: schedule });
    expect(issue?.message).toMatch(problem);
  });

  test("words the method in its own way and warns of five fields", () => {
    const scheduled = aSchedule("0 0 * * *", { online: false });
    expect(validateScheduledBackup(scheduled, { volumeSnapshots: false }).map(formatFieldIssue)).toEqual([
      "spec.online: Invalid value: false: Online parameter can be specified only if the method is volumeSnapshot",
    ]);
    expect(scheduledBackupWarnings(scheduled)).toEqual([
      "Schedule parameter may not have the right number of arguments (usually six arguments are needed)",
    ]);
    expect(scheduledBackupWarnings(aSchedule("@daily"))).toEqual([]);
  });

  test("is admitted without a plugin's name, with a warning that nothing comes of it", () => {
    const nameless = aSchedule("@daily", { method: "plugin" });
    expect(validateScheduledBackup(nameless, { volumeSnapshots: false })).toEqual([]);
    const issue = "spec.pluginConfiguration: Invalid value: null: cannot be empty when the backup method is plugin";
    expect(validateMadeBackups(nameless).map(formatFieldIssue)).toEqual([issue]);
    expect(scheduledBackupWarnings(nameless)).toEqual([`No backup will be made: ${issue}`]);
    const named = aSchedule("@daily", { method: "plugin", pluginConfiguration: { name: "p" } });
    expect(scheduledBackupWarnings(named)).toEqual([]);
  });
});

describe("Database", () => {
  test("takes each name once", () => {
    const twice = [{ name: "a" }, { name: "b" }, { name: "a" }];
    const database = aDatabase({
      schemas: twice,
      extensions: twice,
      fdws: [{ name: "f", options: twice, usage: twice }],
      servers: [{ name: "s", fdw: "f", options: twice }],
    });
    expect(validateDatabase(database).map(formatFieldIssue)).toEqual(
      ["spec.schemas", "spec.extensions", "spec.fdws[0].options", "spec.fdws[0].usage", "spec.servers[0].options"].map(
        (path) => `${path}[2].name: Duplicate value: "a"`,
      ),
    );
  });

  test("knows the wrapper of each server that is to be there", () => {
    const servers = [
      { name: "s", fdw: "f" },
      { name: "t", fdw: "f", ensure: "absent" },
    ];
    expect(validateDatabase(aDatabase({ servers })).map(formatFieldIssue)).toEqual([
      'spec.servers[0].fdw: Invalid value: "f": referenced fdw not defined in spec.fdws',
    ]);
    expect(validateDatabase(aDatabase({ servers, fdws: [{ name: "f" }] }))).toEqual([]);
  });

  test("warns of nothing", () => expect(databaseWarnings(aDatabase({}))).toEqual([]));
});

describe("Pooler", () => {
  test.each<[string, Pooler, string[]]>([
    ["a plain one", aPooler({ parameters: { max_client_conn: "10" } }), []],
    ["no pgbouncer", aPooler(undefined), ["spec.pgbouncer: Invalid value: null: required pgbouncer configuration"]],
    [
      "a secret without a query",
      aPooler({ authQuerySecret: { name: "s" } }),
      ['spec.pgbouncer.authQuery: Invalid value: "": must specify an auth query when providing an auth query secret'],
    ],
    [
      "a query without a secret",
      aPooler({ authQuery: "q" }),
      [
        'spec.pgbouncer.authQuerySecret.name: Invalid value: "": must specify an existing auth query secret when providing an auth query secret',
      ],
    ],
    [
      "reserved settings",
      aPooler({ parameters: { listen_port: "1" } }),
      ['spec.pgbouncer.parameters: Invalid value: "listen_port": Invalid or reserved parameter'],
    ],
    [
      "no cluster",
      aPooler({}, { cluster: { name: "" } }),
      ['spec.cluster.name: Invalid value: "": must specify a cluster name'],
    ],
    [
      "the cluster's name",
      aPooler({}, {}, "db"),
      ['metadata.name: Invalid value: "db": the pooler resource cannot have the same name of a cluster'],
    ],
  ])("%s", (_case, pooler, expected) => {
    expect(validatePooler(pooler).map(formatFieldIssue)).toEqual(expected);
  });

  test("wants a certificate for a scrape over TLS", () => {
    const monitoring = { enablePodMonitor: true, tls: { enabled: true } };
    const [issue] = validatePooler(aPooler({}, { monitoring }));
    expect(issue).toMatchObject({ path: "spec.pgbouncer.clientTLSSecret", kind: "Required" });
    expect(issue?.message).toMatch(/^clientTLSSecret is required when spec\.monitoring\.tls\.enabled is true and/);
    expect(validatePooler(aPooler({ clientTLSSecret: { name: "t" } }, { monitoring }))).toEqual([]);
  });

  test("warns of manual integration and deprecated fields", () => {
    const pooler = aPooler(
      { authQuery: "q", authQuerySecret: { name: "s" } },
      { monitoring: { enablePodMonitor: true } },
    );
    expect(poolerWarnings(pooler)).toEqual([
      'The operator won\'t handle the Pooler "p" integration with the Cluster "db" ("shop"). Manually configure it as described in the docs.',
      "The .spec.pgbouncer.authQuerySecret field has been deprecated",
      expect.stringMatching(/^spec\.monitoring is deprecated and will be removed in a future release\./),
    ]);
    expect(poolerWarnings(aPooler({}))).toEqual([]);
  });
});

test("a refusal reads as Kubernetes words it", () => {
  const one = { path: "a", kind: "Forbidden" as const, message: "no" };
  const two = { path: "b", kind: "Required" as const, message: "" };
  expect(formatRefusal("Cluster.postgresql.cnpg.io", "db", [one])).toBe(
    'Cluster.postgresql.cnpg.io "db" is invalid: a: Forbidden: no',
  );
  expect(formatRefusal("Cluster.postgresql.cnpg.io", "db", [one, two, one])).toBe(
    'Cluster.postgresql.cnpg.io "db" is invalid: [a: Forbidden: no, b: Required value]',
  );
});
