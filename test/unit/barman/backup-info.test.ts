import { describe, expect, test } from "vitest";
import { emptyBackupInfo, formatBackupInfo, parseBackupInfo } from "../../../src/barman/backup-info.ts";
import { barmanTimeFromMs } from "../../../src/barman/barman-time.ts";
import { buildCopyStats } from "../../../src/barman/copy-stats.ts";
import { parseLsn } from "../../../src/postgres/lsn.ts";

const label =
  "START WAL LOCATION: 0/5000028 (file 000000010000000000000005)\nLABEL: Barman backup cloud 20260501T101112\nSTART TIMELINE: 1\n";

/** A finished backup with one tablespace, line by line as Barman writes it. */
const done = `backup_label='${label.replaceAll("\n", "\\n")}'
backup_name=backup-20260501101112
begin_offset=40
begin_time=2026-05-01 10:11:12.345678+00:00
begin_wal=000000010000000000000005
begin_xlog=0/5000028
children_backup_ids=None
cluster_size=34567890
compression=None
config_file=/var/lib/postgresql/data/pgdata/postgresql.conf
copy_stats={'total_time': 1.5, 'number_of_workers': 2, 'analysis_time': 0, 'analysis_time_per_item': {'data': 0}, 'copy_time_per_item': {'tbs1': 0.5, 'data': 1.25}, 'serialized_copy_time_per_item': {'tbs1': 0.5, 'data': 1.0}, 'copy_time': 1.25, 'serialized_copy_time': 1.0}
data_checksums=off
deduplicated_size=None
encryption=None
end_offset=312
end_time=2026-05-01 10:12:13+00:00
end_wal=000000010000000000000005
end_xlog=0/5000138
error=None
hba_file=/var/lib/postgresql/data/pgdata/pg_hba.conf
ident_file=/var/lib/postgresql/data/pgdata/pg_ident.conf
included_files=['/var/lib/postgresql/data/pgdata/custom.conf', '/var/lib/postgresql/data/pgdata/override.conf']
mode=None
parent_backup_id=None
pgdata=/var/lib/postgresql/data/pgdata
server_name=cloud
size=None
status=DONE
summarize_wal=None
systemid=7364512345678901234
tablespaces=[('tbs1', 16390, '/var/lib/postgresql/tablespaces/tbs1/data')]
timeline=1
version=160003
xlog_segment_size=16777216
`;

describe("backup.info", () => {
  test("a finished backup is read and written byte by byte", () => {
    const info = parseBackupInfo(done);
    expect(formatBackupInfo(info)).toBe(done);
    expect(info).toMatchObject({
      backupLabel: label,
      backupName: "backup-20260501101112",
      beginXlog: 0x5000028n,
      tablespaces: [{ name: "tbs1", oid: 16390, location: "/var/lib/postgresql/tablespaces/tbs1/data" }],
      systemid: "7364512345678901234",
      status: "DONE",
      compression: null,
    });
  });

  test("built values give the same bytes", () => {
    const copyStats = buildCopyStats({
      totalTime: 1.5,
      workers: 2,
      copyTimePerItem: { tbs1: 0.5, data: 1.25 },
      serializedCopyTimePerItem: { tbs1: 0.5, data: 1 },
      copyTime: 1.25,
      serializedCopyTime: 1,
    });
    const info = { ...parseBackupInfo(done), copyStats, endTime: barmanTimeFromMs(Date.parse("2026-05-01T10:12:13Z")) };
    expect(formatBackupInfo(info)).toBe(done);
  });

  test("a started backup has every key but the name", () => {
    const text = formatBackupInfo({ ...emptyBackupInfo, status: "STARTED", beginXlog: parseLsn("1A/28") ?? null });
    const keys = text
      .trimEnd()
      .split("\n")
      .map((line) => line.slice(0, line.indexOf("=")));
    expect(keys).toEqual([...keys].sort());
    expect(keys).toHaveLength(33);
    expect(keys).not.toContain("backup_name");
    expect(keys).not.toContain("snapshots_info");
    expect(text).toContain("begin_xlog=1A/28\n");
    expect(text).toContain("status=STARTED\n");
    expect(text).toContain("end_time=None\n");
  });

  test("comments, blank lines and keys of later versions are passed over", () => {
    const info = parseBackupInfo(`# made by hand\n\n${done}new_key=something=else\n`);
    expect(formatBackupInfo(info)).toBe(done);
  });

  test.each([
    ["a line without =", `${done}nonsense\n`, "line 35 of backup.info has no"],
    ["an unknown status", done.replace("status=DONE", "status=HALF"), "status in line 28"],
    ["a number that is none", done.replace("begin_offset=40", "begin_offset=4O"), "begin_offset in line 3"],
    ["an LSN that is none", done.replace("end_xlog=0/5000138", "end_xlog=5000138"), "end_xlog in line 18"],
    ["a time that is none", done.replace("2026-05-01 10:12:13", "2026-02-30 10:12:13"), "end_time in line 16"],
    ["a literal that is cut off", done.replace("/data')]", "/data'"), "tablespaces in line 31"],
    ["no status at all", "begin_offset=40\n", "no status"],
  ])("%s makes it unreadable", (_what, text, message) => {
    expect(() => parseBackupInfo(text)).toThrow(message);
  });

  test("a value that would break the line is refused", () => {
    expect(() => formatBackupInfo({ ...parseBackupInfo(done), error: "a\nb" })).toThrow("error of backup.info");
  });

  test("the segment size has a default", () => {
    expect(parseBackupInfo(done.replace(/xlog_segment_size.*\n/, "")).xlogSegmentSize).toBe(16_777_216);
  });
});
