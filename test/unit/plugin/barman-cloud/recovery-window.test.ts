import { describe, expect, test } from "vitest";
import { possiblyGone, updateWindows } from "../../../../src/plugin/barman-cloud/recovery-window.ts";
import { aBackup, aCatalog } from "../../../support/backup-catalog.ts";

const oneDay = aCatalog([
  aBackup("20260501T020000", { end: "2026-05-01 03:00:00.750+00:00" }),
  aBackup("20260502T020000", { end: "2026-05-02 03:00:00+00:00" }),
  aBackup("20260503T020000", { status: "FAILED", end: "2026-05-03 03:00:00+00:00" }),
]);

describe("the recovery window of a server", () => {
  test("runs from the end of the oldest finished backup; a failed one is none", () => {
    expect(updateWindows({}, "orders", { kind: "catalog", catalog: oneDay })).toEqual({
      orders: { firstRecoverabilityPoint: "2026-05-01T03:00:00Z", lastSuccessfulBackupTime: "2026-05-02T03:00:00Z" },
    });
  });

  test("keeps what it knows of failures and of other servers", () => {
    const before = {
      other: { firstRecoverabilityPoint: "2025-01-01T00:00:00Z" },
      orders: { lastFailedBackupTime: "x" },
    };
    const after = updateWindows(before, "orders", { kind: "catalog", catalog: aCatalog([]) });
    expect(after).toBe(before);
    expect(updateWindows(before, "orders", { kind: "failed", atMs: Date.parse("2026-05-04T00:00:00.9Z") })).toEqual({
      other: before.other,
      orders: { lastFailedBackupTime: "2026-05-04T00:00:00Z" },
    });
  });

  test("loses its points when no backup is left", () => {
    const before = updateWindows({}, "orders", { kind: "catalog", catalog: oneDay });
    expect(updateWindows(before, "orders", { kind: "catalog", catalog: aCatalog([]) })).toEqual({ orders: {} });
  });

  test("goes with its server, unless news of that came in between", () => {
    const known = { firstRecoverabilityPoint: "2025-01-01T00:00:00Z" };
    const windows = { gone: known, orders: {} };
    expect(updateWindows(windows, "gone", { kind: "gone", known })).toEqual({ orders: {} });
    expect(updateWindows(windows, "gone", { kind: "gone", known: {} })).toBe(windows);
    expect(updateWindows(windows, "nobody", { kind: "gone", known: {} })).toBe(windows);
  });

  test("is asked about unless it is the own server's, or that of one that has just failed", () => {
    const nowMs = Date.parse("2026-05-08T00:00:00Z");
    const windows = {
      orders: {},
      old: { firstRecoverabilityPoint: "2025-01-01T00:00:00Z" },
      failing: { lastFailedBackupTime: "2026-05-04T00:00:00Z" },
      failed: { lastFailedBackupTime: "2026-04-30T00:00:00Z" },
    };
    expect(possiblyGone(windows, "orders", nowMs).map(([name]) => name)).toEqual(["old", "failed"]);
  });
});
