import { describe, expect, test } from "vitest";
import { type BackupTarget, chooseBackup, newestTimeline } from "../../../src/barman/backup-choice.ts";
import { parseBarmanTime } from "../../../src/barman/barman-time.ts";
import { parseLsn } from "../../../src/postgres/lsn.ts";
import { aBackup, aCatalog } from "../../support/backup-catalog.ts";

const lsn = (text: string) => parseLsn(text) ?? 0n;
const micros = (text: string) => parseBarmanTime(text)?.epochMicros ?? Number.NaN;

const a = aBackup("20260301T090000", { end: "2026-03-01 09:20:00+00:00", endXlog: lsn("0/2000100") });
const b = aBackup("20260301T120000", { end: "2026-03-01 12:40:00+00:00", endXlog: lsn("0/5000100") });
const failed = aBackup("20260301T130000", {
  status: "FAILED",
  end: "2026-03-01 13:20:00+00:00",
  endXlog: lsn("0/6000100"),
});
const catalog = aCatalog([b, failed, a]);

const chosen = (target: BackupTarget, histories = new Map()) => {
  const choice = chooseBackup(catalog, target, histories);
  return choice.kind === "chosen" ? choice.backup.id : choice.message;
};

describe("backup for a target", () => {
  test("without a target the newest one that is done", () => {
    expect(chosen({})).toBe(b.id);
  });

  test.each([
    ["2026-03-01 12:15:00+00:00", a.id],
    ["2026-03-01 12:40:00+00:00", b.id],
    ["2026-03-01 12:40:01+00:00", b.id],
    ["2026-03-01 12:39:59.999999+00:00", a.id],
    ["2026-03-01 13:40:00+00:00", b.id],
    ["2026-03-01 10:20:00+01:00", a.id],
  ])("time %s", (time, id) => {
    expect(chosen({ timeMicros: micros(time) })).toBe(id);
  });

  test("a time before the end of the first backup has none, and the text says so", () => {
    const message = chosen({ timeMicros: micros("2026-03-01 08:59:00+00:00") });
    expect(message).toContain("no target backup found");
    expect(message).toContain("of 2 finished backups none ends at or before 2026-03-01T08:59:00.000Z");
  });

  test.each([
    ["0/5000100", a.id],
    ["0/5000101", b.id],
    ["0/2000101", a.id],
  ])("LSN %s must lie after the end of the backup", (text, id) => {
    expect(chosen({ lsn: lsn(text) })).toBe(id);
  });

  test("an ID is taken as it is, and a failed or missing one refused", () => {
    expect(chosen({ backupId: a.id, timeMicros: 0 })).toBe(a.id);
    expect(chosen({ backupId: failed.id })).toContain("its status is FAILED");
    expect(chosen({ backupId: "20260101T000000" })).toBe("no backup found with ID 20260101T000000");
  });
});

describe("timelines", () => {
  const entry = (timeline: number, switchPoint: string) => ({ timeline, switchPoint: lsn(switchPoint), reason: "" });
  const old = aBackup("20260301T090000", { timeline: 1, endXlog: lsn("0/2000100") });
  const late = aBackup("20260301T100000", { timeline: 1, endXlog: lsn("0/9000100") });
  const next = aBackup("20260301T110000", { timeline: 2, endXlog: lsn("0/8000100") });
  const dead = aBackup("20260301T120000", { timeline: 3, endXlog: lsn("0/7000100") });
  const histories = new Map([
    [2, [entry(1, "0/5000000")]],
    [3, [entry(1, "0/5000000"), entry(2, "0/6000000")]],
    [4, [entry(1, "0/5000000"), entry(2, "0/9000000")]],
  ]);
  const pick = (backups: (typeof old)[], target: BackupTarget) => {
    const choice = chooseBackup(aCatalog(backups), target, histories);
    return choice.kind === "chosen" ? choice.backup.id : undefined;
  };

  test.each([
    ["latest leaves the dead branch aside", [old, late, next, dead], {}, next.id],
    ["an ancestor before the switch point serves", [old, late], {}, old.id],
    ["an ancestor after it does not", [late], {}, undefined],
    ["a number may name an ancestor's line", [old, next, dead], { timeline: 1 }, old.id],
    ["a number may name a branch", [old, next, dead], { timeline: 3 }, dead.id],
    ["a branch is reached from an ancestor", [old, next], { timeline: 3 }, old.id],
    ["current follows the backup's own", [old, late, next, dead], { timeline: "current" as const }, dead.id],
    ["a timeline without history has its own backups only", [old, dead], { timeline: 9 }, undefined],
  ])("%s", (_what, backups, target, id) => {
    expect(pick(backups, target)).toBe(id);
  });

  test("the newest timeline is the end of the unbroken row of history files", () => {
    expect(newestTimeline(1, histories)).toBe(4);
    expect(newestTimeline(5, histories)).toBe(5);
    expect(newestTimeline(1, new Map([[3, []]]))).toBe(1);
  });
});
