import { describe, expect, test } from "vitest";
import { parseBackupTarget, parseTargetTime } from "../../../src/barman/backup-target.ts";

const micros = (text: string) => Date.parse(text) * 1000;

describe("a recovery target as far as it chooses the backup", () => {
  test.each([
    ["2026-05-01T10:11:12Z", micros("2026-05-01T10:11:12Z")],
    ["2026-05-01T10:11:12.345678+02:00", micros("2026-05-01T08:11:12Z") + 345_678],
    ["2026-05-01 10:11:12", micros("2026-05-01T10:11:12Z")],
    ["2026-05-01 10:11:12.5", micros("2026-05-01T10:11:12Z") + 500_000],
    ["2026-05-01 10:11:12-05", micros("2026-05-01T15:11:12Z")],
    ["2026-05-01 10:11:12.000000+0530", micros("2026-05-01T04:41:12Z")],
    ["2026-13-01 10:11:12", undefined],
    ["yesterday", undefined],
  ])("time %s", (text, expected) => {
    expect(parseTargetTime(text)).toBe(expected);
  });

  test("nothing is asked for without a target", () => {
    expect(parseBackupTarget(undefined)).toEqual({});
    expect(parseBackupTarget({ targetXID: "17", exclusive: true })).toEqual({});
  });

  test("every field that decides is read", () => {
    expect(parseBackupTarget({ backupID: "20260501T101112" })).toEqual({ backupId: "20260501T101112" });
    expect(parseBackupTarget({ targetLSN: "0/3000028", targetTLI: "2" })).toEqual({ lsn: 0x3000028n, timeline: 2 });
    expect(parseBackupTarget({ targetTLI: "latest" })).toEqual({ timeline: "latest" });
  });

  test.each([
    [{ targetTime: "soon" }, 'recoveryTarget.targetTime is "soon"'],
    [{ targetLSN: "3" }, 'recoveryTarget.targetLSN is "3"'],
    [{ targetTLI: "main" }, 'recoveryTarget.targetTLI is "main"'],
  ])("%o is refused by name", (target, message) => {
    expect(() => parseBackupTarget(target)).toThrow(message);
  });
});
