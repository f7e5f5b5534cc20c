import { describe, expect, it } from "vitest";
import { unquoteSetting } from "../../../src/postgres/configuration.ts";
import { buildCustomConf, buildSettings } from "../../../src/postgres/custom-conf.ts";
import { ensureIncludes } from "../../../src/postgres/includes.ts";
import { fixedParameters } from "../../../src/postgres/parameters.ts";
import { aCluster } from "./a-cluster.ts";

const run = { major: 17, mode: "run" } as const;

describe("settings", () => {
  it("leave out what a user may not set, and let defaults be changed", () => {
    const parameters = {
      wal_level: "replica",
      port: "1",
      listen_addresses: "x",
      primary_conninfo: "y",
      work_mem: "1MB",
    };
    const settings = buildSettings(aCluster({ postgresql: { parameters } }), run);
    expect(settings.get("wal_level")).toBe("replica");
    expect(settings.get("work_mem")).toBe("1MB");
    expect(settings.get("port")).toBe("5432");
    expect(settings.get("listen_addresses")).toBe("*");
    expect(settings.has("primary_conninfo")).toBe(false);
  });

  it("of the bootstrap job keep what the user gave and lack the mandatory set", () => {
    const parameters = { log_directory: "/elsewhere", hot_standby: "off" };
    const settings = buildSettings(aCluster({ postgresql: { parameters } }), { major: 17, mode: "init" });
    expect(settings.get("log_directory")).toBe("/elsewhere");
    expect(settings.get("hot_standby")).toBe("off");
    for (const name of ["archive_command", "ssl", "unix_socket_directories", "allow_alter_system"]) {
      expect(settings.has(name)).toBe(false);
    }
    expect(settings.get("cluster_name")).toBe("obs");
  });

  it.each([
    [17, false, "off"],
    [17, true, "on"],
    [18, undefined, "off"],
    [16, true, undefined],
  ])("of major %i with enableAlterSystem %s: allow_alter_system %s", (major, enableAlterSystem, expected) => {
    const postgresql = enableAlterSystem === undefined ? {} : { enableAlterSystem };
    expect(buildSettings(aCluster({ postgresql }), { major, mode: "run" }).get("allow_alter_system")).toBe(expected);
  });

  it("choose archive_mode by annotation and role", () => {
    const replica = { replica: { enabled: true, source: "origin" } };
    const mode = (cluster: ReturnType<typeof aCluster>) => buildSettings(cluster, run).get("archive_mode");
    expect(mode(aCluster())).toBe("on");
    expect(mode(aCluster(replica))).toBe("always");
    expect(mode(aCluster(replica, {}, { "cnpg.io/skipWalArchiving": "enabled" }))).toBe("off");
  });

  it.each([
    ["30m5s", "1805s"],
    ["1.9s", "1s"],
    ["0s", undefined],
    [undefined, undefined],
  ])("delay a replica cluster by %s", (minApplyDelay, expected) => {
    const replica = { enabled: true, source: "origin", ...(minApplyDelay ? { minApplyDelay } : {}) };
    expect(buildSettings(aCluster({ replica }), run).get("recovery_min_apply_delay")).toBe(expected);
    const primary = aCluster({ replica: { ...replica, enabled: false } });
    expect(buildSettings(primary, run).has("recovery_min_apply_delay")).toBe(false);
  });

  it("preload the user's libraries, then those of extensions in use, each once", () => {
    const postgresql = {
      shared_preload_libraries: ["timescaledb", "", "my_pgaudit_helper", "timescaledb"],
      parameters: { "pg_stat_statements.max": "10", "pgaudit.log": "all", "auto_explain.log_analyze": "on" },
    };
    expect(buildSettings(aCluster({ postgresql }), run).get("shared_preload_libraries")).toBe(
      "timescaledb,my_pgaudit_helper,pgaudit,pg_stat_statements,auto_explain",
    );
  });

  it("name temporary tablespaces in order", () => {
    const storage = { size: "1Gi" };
    const tablespaces = [
      { name: "tmp_b", temporary: true, storage },
      { name: "data", storage },
      { name: "tmp_a", temporary: true, storage },
    ];
    expect(buildSettings(aCluster({ tablespaces }), run).get("temp_tablespaces")).toBe("tmp_a,tmp_b");
    expect(buildSettings(aCluster(), run).has("temp_tablespaces")).toBe(false);
  });

  it("make logical slots wait for the standbys' slots", () => {
    const replicationSlots = { highAvailability: { enabled: true, synchronizeLogicalDecoding: true } };
    const parameters = { sync_replication_slots: "yes", "pg_failover_slots.synchronize_slot_names": "x" };
    const cluster = aCluster({ replicationSlots, postgresql: { parameters } });
    const settings = buildSettings(cluster, run);
    expect(settings.get("synchronized_standby_slots")).toBe("_cnpg_obs_2,_cnpg_obs_3");
    expect(settings.get("pg_failover_slots.standby_slot_names")).toBe("_cnpg_obs_2,_cnpg_obs_3");
    expect(buildSettings(cluster, { major: 16, mode: "run" }).has("synchronized_standby_slots")).toBe(false);
    const joining = aCluster(
      { replicationSlots, postgresql: { parameters } },
      { initializingPVC: ["obs-3", "obs-3-wal"] },
    );
    expect(buildSettings(joining, run).get("synchronized_standby_slots")).toBe("_cnpg_obs_2");
    expect(buildSettings(joining, run).get("pg_failover_slots.standby_slot_names")).toBe("_cnpg_obs_2");
    const off = aCluster({ replicationSlots: { highAvailability: { enabled: false } }, postgresql: { parameters } });
    expect(buildSettings(off, run).has("synchronized_standby_slots")).toBe(false);
    const empty = aCluster({ replicationSlots, postgresql: { parameters } }, { instanceNames: [] });
    expect(buildSettings(empty, run).get("synchronized_standby_slots")).toBe("");
  });

  it("find image extensions where they are mounted", () => {
    const extensions = [{ name: "vector" }, { name: "postgis", extension_control_path: ["a", "b/../c"] }];
    const info = { image: "i:18", majorVersion: 18, extensions };
    const postgresql = { parameters: { extension_control_path: "$system:/mine" } };
    const cluster = aCluster({ postgresql }, { pgDataImageInfo: info, targetPgDataImageInfo: info });
    const settings = buildSettings(cluster, { major: 18, mode: "run" });
    expect(settings.get("extension_control_path")).toBe(
      "$system:/extensions/vector/share:/extensions/postgis/a:/extensions/postgis/c:$system:/mine",
    );
    expect(settings.get("dynamic_library_path")).toBe("$libdir:/extensions/vector/lib:/extensions/postgis/lib");
    const upgrade = buildSettings(cluster, { major: 18, mode: "upgrade" });
    expect(upgrade.get("dynamic_library_path")).toContain("/new-extensions/vector/lib");
    expect(() => buildSettings(aCluster(), { major: 18, mode: "upgrade" })).toThrow(/targetPgDataImageInfo/);
  });

  it("take overrides last", () => {
    const settings = buildSettings(aCluster(), { ...run, overrides: { max_connections: "500", ssl: "off" } });
    expect([settings.get("max_connections"), settings.get("ssl")]).toEqual(["500", "off"]);
  });
});

describe("the hash", () => {
  it("leaves out our own lines but covers the standby list", () => {
    const base = { postgresql: { synchronous: { method: "any" as const, number: 1 } } };
    const hash = (parameters: Record<string, string>, status = {}) =>
      buildCustomConf(aCluster({ postgresql: { ...base.postgresql, parameters } }, status), run);
    const plain = hash({});
    expect(hash({ "cnpg.note": "x" }).sha256).toBe(plain.sha256);
    expect(hash({ "cnpg.note": "x" }).text).not.toBe(plain.text);
    expect(hash({}, { instanceNames: ["obs-1"], instancesStatus: { healthy: ["obs-1"] } }).sha256).not.toBe(
      plain.sha256,
    );
    expect(plain.text.trimEnd().split("\n").at(-1)).toBe(`cnpg.config_sha256 = '${plain.sha256}'`);
  });
});

describe("fixed parameters", () => {
  it("are the documented ones but the TLS curve, which users choose", () => {
    expect(fixedParameters.size).toBe(64);
    expect(fixedParameters.has("allow_alter_system")).toBe(false);
  });
});

describe("include lines", () => {
  it("are added once, in order, after any text", () => {
    const first = ensureIncludes("port = 5432");
    expect(first.changed).toBe(true);
    expect(first.text).toMatch(/^port = 5432\n\n#.*\ninclude 'custom.conf'\n\n#.*\ninclude 'override.conf'\n$/);
    expect(ensureIncludes(first.text)).toEqual({ text: first.text, changed: false });
  });

  it("are added back when one is missing or commented out", () => {
    const text = ensureIncludes("").text.replace("include 'override.conf'", "#include 'override.conf'");
    expect(ensureIncludes(text).text.endsWith("include 'override.conf'\n")).toBe(true);
  });
});

describe("quoted values", () => {
  it.each(["'a", "a'", "''a'", "'a'b'", "'a\\'", ""])("refuse %j", (text) => {
    expect(unquoteSetting(text)).toBeUndefined();
  });
});
