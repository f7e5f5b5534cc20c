import { describe, expect, test } from "vitest";
import { formatBackupInfo } from "../../../src/barman/backup-info.ts";
import { buildCatalog, computeRecoveryWindow, findBackup, firstRequiredWal } from "../../../src/barman/catalog.ts";
import { aBackup, aCatalog } from "../../support/backup-catalog.ts";

const first = aBackup("20260501T100000", { end: "2026-05-01 10:10:00+00:00", beginWal: "000000010000000000000005" });
const failed = aBackup("20260502T100000", {
  status: "FAILED",
  end: "2026-05-02 10:10:00+00:00",
  beginWal: "000000010000000000000008",
});
const second = aBackup("20260503T100000", { end: "2026-05-03 10:10:00+00:00", backupName: "nightly" });
const started = aBackup("20260504T100000", { status: "STARTED", end: null });
const catalog = aCatalog([started, second, failed, first]);

describe("catalog", () => {
  test("folders are read, ordered by begin, and unreadable ones kept apart", () => {
    const entry = (backup: typeof first) => ({ id: backup.id, backupInfo: formatBackupInfo(backup.info) });
    const built = buildCatalog([
      entry(second),
      { ...entry(first), keep: "full" },
      { id: "20260505T100000", backupInfo: "nonsense" },
      { id: "20260506T100000", backupInfo: undefined },
      { ...entry(failed), keep: "for ever" },
    ]);
    expect(built.backups.map(({ id, keep }) => [id, keep])).toEqual([
      ["20260501T100000", "full"],
      ["20260503T100000", undefined],
    ]);
    expect(built.unreadable.map(({ id }) => id)).toEqual(["20260505T100000", "20260502T100000"]);
  });

  test("the recovery window goes from the end of the oldest done backup to the end of the newest", () => {
    expect(computeRecoveryWindow(catalog)).toEqual({
      firstRecoverabilityPointMs: Date.parse("2026-05-01T10:10:00Z"),
      lastSuccessfulBackupMs: Date.parse("2026-05-03T10:10:00Z"),
    });
    expect(firstRequiredWal(catalog)).toBe("000000010000000000000005");
  });

  test("failed and unfinished backups open no window", () => {
    const empty = { firstRecoverabilityPointMs: undefined, lastSuccessfulBackupMs: undefined };
    expect(computeRecoveryWindow(aCatalog([failed, started]))).toEqual(empty);
    expect(computeRecoveryWindow(aCatalog([]))).toEqual(empty);
  });

  test.each([
    ["20260502T100000", failed.id],
    ["nightly", second.id],
    ["first", first.id],
    ["oldest", first.id],
    ["latest", second.id],
    ["last", second.id],
    ["last-failed", failed.id],
  ])("%s is found", (wanted, id) => {
    expect(findBackup(catalog, wanted)).toMatchObject({ kind: "found", backup: { id } });
  });

  test("what is not there or not clear is said", () => {
    expect(findBackup(catalog, "20260502T100001")).toMatchObject({ kind: "missing" });
    const twice = aCatalog([second, aBackup("20260507T100000", { backupName: "nightly" })]);
    expect(findBackup(twice, "nightly")).toMatchObject({
      kind: "ambiguous",
      message: "2 backups have the name nightly",
    });
  });
});
