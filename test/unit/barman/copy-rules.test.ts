import { describe, expect, test } from "vitest";
import { decideDataPath, decideTablespacePath, tarNameOf } from "../../../src/barman/copy-rules.ts";

describe("decideDataPath", () => {
  test.each([
    "PG_VERSION",
    "pg_wal",
    "pg_replslot",
    "log",
    "base/1/1259",
    "base/16384/16385.1",
    "base/16384/t_16385",
    "recovery.signal",
    "backup_manifest",
    "postgresql.auto.conf",
    "custom.conf",
    "pg_xact/0000",
    "pg_logical/mappings",
    "pg_stat/pgstat.stat",
    "base/log/x",
  ])("copies %s", (path) => {
    expect(decideDataPath(path)).toBe("copy");
  });

  test.each([
    "pg_wal/000000010000000000000001",
    "pg_wal/archive_status",
    "log/postgres.csv",
    "global/pg_control",
    "backup_label",
    "postmaster.pid",
    "standby.signal",
    "base/pgsql_tmp",
    "base/16384/t3_16385",
    "base/16384/t3_16385_fsm",
    "base/16384/t3_16385.1",
    "base/16384/pg_internal.init",
    "pg_replslot/slot",
    "pg_subtrans/0000",
    "pg_stat_tmp/x",
  ])("leaves out %s", (path) => {
    expect(decideDataPath(path)).toBe("leaveOut");
  });

  test("leaves out tablespaces inside the data folder", () => {
    expect(decideDataPath("spaces/one", new Set(["spaces/one"]))).toBe("leaveOut");
    expect(decideDataPath("spaces/two", new Set(["spaces/one"]))).toBe("copy");
  });
});

test("a tablespace's folder gives only what this major version keeps there", () => {
  expect(decideTablespacePath("PG_15_202209061", 15)).toBe("copy");
  expect(decideTablespacePath("PG_15_202209061/5/16385", 15)).toBe("copy");
  expect(decideTablespacePath("PG_15_202209061/pgsql_tmp", 15)).toBe("leaveOut");
  expect(decideTablespacePath("PG_14_202107181/5/16385", 15)).toBe("leaveOut");
  expect(decideTablespacePath("PG_1_x", 15)).toBe("leaveOut");
  expect(decideTablespacePath("lost+found", 15)).toBe("leaveOut");
});

test("names of the first level carry a dot", () => {
  expect(["base", "base/1", "base/1/2"].map(tarNameOf)).toEqual(["./base", "base/1", "base/1/2"]);
});
