import { describe, expect, test } from "vitest";
import type { CatalogBackup } from "../../../src/barman/catalog.ts";
import {
  announcedBound,
  classifyBackups,
  formatBarmanPolicy,
  parseRetentionPolicy,
  planRetention,
  planWalRetention,
} from "../../../src/barman/retention.ts";
import { aBackup, aCatalog } from "../../support/backup-catalog.ts";

const dayMs = 86_400_000;
const now = Date.parse("2026-05-10T12:00:00Z");
const day = (number: number, facts = {}) => {
  const two = String(number).padStart(2, "0");
  return aBackup(`202605${two}T100000`, {
    end: `2026-05-${two} 11:00:00+00:00`,
    beginWal: `0000000100000000000000${two}`,
    endWal: `0000000100000000000000${two}`,
    ...facts,
  });
};
/** What becomes of WAL when a backup older than the given ones is removed. */
const afterRemoval = (...kept: CatalogBackup[]) => {
  const timeline = kept.find(({ keep }) => keep !== "standalone")?.info.timeline ?? 1;
  const gone = aBackup("20260401T000000", { timeline, beginWal: `0000000${timeline}0000000000000000` });
  return planWalRetention([gone, ...kept], new Set([gone.id]));
};
const policy = parseRetentionPolicy("3d") ?? { kind: "redundancy" as const, count: 0 };

describe("policy text", () => {
  test.each([
    ["30d", { kind: "recoveryWindow", ms: 30 * dayMs }],
    ["4w", { kind: "recoveryWindow", ms: 28 * dayMs }],
    ["2m", { kind: "recoveryWindow", ms: 62 * dayMs }],
    ["RECOVERY WINDOW OF 7 DAYS", { kind: "recoveryWindow", ms: 7 * dayMs }],
    ["recovery window of 1 week", { kind: "recoveryWindow", ms: 7 * dayMs }],
    ["redundancy 3", { kind: "redundancy", count: 3 }],
    ["0d", undefined],
    ["d", undefined],
    ["3y", undefined],
    ["", undefined],
    ["REDUNDANCY 0", undefined],
  ])("%j", (text, expected) => {
    expect(parseRetentionPolicy(text)).toEqual(expected);
  });

  test("in Barman's words", () => {
    expect(formatBarmanPolicy("30d")).toBe("RECOVERY WINDOW OF 30 DAYS");
    expect(formatBarmanPolicy("2m")).toBe("RECOVERY WINDOW OF 2 MONTHS");
    expect(formatBarmanPolicy("x")).toBeUndefined();
  });
});

describe("recovery window", () => {
  test("one backup older than the window stays, older ones go, failed ones are no recovery point", () => {
    const catalog = aCatalog([day(1), day(5), day(6, { status: "FAILED" }), day(7), day(8), day(9)]);
    const plan = planRetention(catalog, policy, { nowMs: now });
    expect(plan.kind === "delete" && plan.backups.map(({ id }) => id)).toEqual([
      "20260501T100000",
      "20260505T100000",
      "20260506T100000",
    ]);
    const wal = planWalRetention(
      catalog.backups,
      new Set(plan.kind === "delete" ? plan.backups.map(({ id }) => id) : []),
    );
    expect(wal.firstRequired).toBe("000000010000000000000007");
    expect(wal.isObsolete("000000010000000000000006")).toBe(true);
    expect(wal.isObsolete("000000010000000000000007")).toBe(false);
    expect(wal.isObsolete("000000010000000000000006.00000028.backup")).toBe(true);
    expect(wal.isObsolete("00000001.history")).toBe(false);
  });

  test("an end exactly on the edge does not yet cover the window's first moment, as Barman counts", () => {
    const edge = day(7, { end: "2026-05-07 12:00:00+00:00" });
    const classes = classifyBackups(aCatalog([day(5), day(6), edge, day(8)]), policy, { nowMs: now });
    expect([...classes.values()].reverse()).toEqual(["OBSOLETE", "VALID", "VALID", "VALID"]);
  });

  test("minimum redundancy keeps obsolete ones", () => {
    const catalog = aCatalog([day(1), day(2), day(3)]);
    const classes = classifyBackups(catalog, policy, { nowMs: now, minimumRedundancy: 2 });
    expect(Object.fromEntries(classes)).toEqual({
      "20260503T100000": "VALID",
      "20260502T100000": "OBSOLETE*",
      "20260501T100000": "OBSOLETE",
    });
  });

  test("nothing in the catalog, nothing to delete, and no WAL either", () => {
    const plan = planRetention(aCatalog([]), policy, { nowMs: now });
    expect(plan).toMatchObject({ kind: "delete", backups: [] });
    expect(planWalRetention([], new Set()).firstRequired).toBeUndefined();
    expect(planWalRetention([], new Set()).isObsolete("000000010000000000000001")).toBe(false);
  });

  test("an unreadable backup blocks everything", () => {
    const catalog = aCatalog([day(1), day(9)], [{ id: "20260502T100000", reason: "no status" }]);
    expect(planRetention(catalog, policy, { nowMs: now })).toMatchObject({
      kind: "refused",
      reason: expect.stringContaining("20260502T100000 (no status)"),
    });
  });

  test("kept backups never go, and count as valid", () => {
    const catalog = aCatalog([day(1, { keep: "full" }), day(2, { keep: "standalone" }), day(3), day(5), day(9)]);
    const plan = planRetention(catalog, policy, { nowMs: now });
    expect(plan.kind === "delete" && plan.backups.map(({ id }) => id)).toEqual(["20260503T100000"]);
  });
});

test("redundancy keeps the newest ones", () => {
  const catalog = aCatalog([day(1), day(2), day(3, { status: "FAILED" }), day(4)]);
  const plan = planRetention(catalog, { kind: "redundancy", count: 3 }, { nowMs: now });
  expect(plan.kind === "delete" && plan.backups).toEqual([]);
  const fewer = planRetention(catalog, { kind: "redundancy", count: 1 }, { nowMs: now });
  expect(fewer.kind === "delete" && fewer.backups.map(({ id }) => id)).toEqual([
    "20260501T100000",
    "20260502T100000",
    "20260503T100000",
  ]);
});

describe("what no policy speaks of", () => {
  test("a failed backup younger than a valid one stays", () => {
    const plan = planRetention(aCatalog([day(8), day(9, { status: "FAILED" })]), policy, { nowMs: now });
    expect(plan.kind === "delete" && plan.backups).toEqual([]);
  });

  test("a started backup goes when it is old and behind a valid one, never while it is younger than a day", () => {
    const abandoned = day(1, { status: "STARTED", end: null });
    const running = aBackup("20260510T110000", { status: "STARTED", end: null });
    const later = aBackup("20260510T113000");
    const plan = planRetention(aCatalog([abandoned, day(7), running, later]), policy, { nowMs: now });
    expect(plan.kind === "delete" && plan.backups.map(({ id }) => id)).toEqual(["20260501T100000"]);
  });

  test("without any valid backup nothing is cleaned", () => {
    const plan = planRetention(aCatalog([day(1, { status: "FAILED" })]), policy, { nowMs: now });
    expect(plan.kind === "delete" && plan.backups).toEqual([]);
  });
});

describe("WAL that stays", () => {
  test("of other timelines that kept backups began on", () => {
    const old = aBackup("20260501T100000", {
      timeline: 3,
      beginWal: "000000030000000000000010",
      endWal: "000000030000000000000010",
    });
    const branch = aBackup("20260502T100000", {
      timeline: 2,
      beginWal: "000000020000000000000020",
      endWal: "000000020000000000000020",
    });
    const wal = afterRemoval(old, branch);
    expect(wal.firstRequired).toBe("000000030000000000000010");
    expect(wal.isObsolete("000000020000000000000001")).toBe(false);
    expect(wal.isObsolete("000000010000000000000001")).toBe(true);
    expect(wal.isObsolete("00000003000000000000000F")).toBe(true);
  });

  test("of the timeline of a backup that goes now, until the next removal", () => {
    const old = day(1);
    const young = aBackup("20260502T100000", { timeline: 2, beginWal: "000000020000000000000020" });
    const wal = planWalRetention([old, young], new Set([old.id]));
    expect(wal.isObsolete("000000010000000000000001")).toBe(false);
    expect(wal.isObsolete("00000002000000000000001F")).toBe(true);
    expect(afterRemoval(young).isObsolete("000000010000000000000001")).toBe(true);
  });

  test("of a standalone backup its own range only", () => {
    const kept = day(2, { keep: "standalone", endWal: "000000010000000000000003" });
    const wal = planWalRetention([kept, day(5), day(9)], new Set([day(5).id]));
    expect(wal.firstRequired).toBe("000000010000000000000009");
    const names = ["01", "02", "03", "04", "08", "09"].map((two) => `0000000100000000000000${two}`);
    expect(names.filter((name) => wal.isObsolete(name))).toEqual([
      "000000010000000000000001",
      "000000010000000000000004",
      "000000010000000000000008",
    ]);
    expect(wal.isObsolete("000000010000000000000003.00000028.backup")).toBe(false);
  });

  test("all of it when only a standalone backup is left", () => {
    expect(afterRemoval(day(2, { keep: "standalone" })).isObsolete("000000010000000000000001")).toBe(false);
  });

  test("all of it while no backup older than the oldest kept one goes", () => {
    expect(planWalRetention([day(5)], new Set()).isObsolete("000000010000000000000001")).toBe(false);
    const kept = day(5, { keep: "full" });
    const wal = planWalRetention([kept, day(7), day(9)], new Set([day(7).id]));
    expect(wal.isObsolete("000000010000000000000001")).toBe(false);
    expect(wal.isObsolete("000000010000000000000006")).toBe(false);
  });

  test("what a running backup began with", () => {
    const running = day(3, { status: "STARTED", end: null, endWal: null });
    expect(afterRemoval(running, day(9)).firstRequired).toBe("000000010000000000000003");
    expect(afterRemoval(day(3, { status: "FAILED" }), day(9)).firstRequired).toBe("000000010000000000000009");
  });
});

describe("an announced first segment", () => {
  const backups = [day(1), day(5), day(9)];
  test.each([
    ["of a backup that stays, holds", "000000010000000000000005", ["20260501T100000"], "000000010000000000000005"],
    ["of a backup that goes, goes with it", "000000010000000000000001", ["20260501T100000"], undefined],
    ["of no backup, holds", "000000010000000000000003", ["20260501T100000"], "000000010000000000000003"],
    ["holds while nothing goes", "000000010000000000000001", [], "000000010000000000000001"],
    ["is none where nobody announced one", undefined, ["20260501T100000"], undefined],
  ])("%s", (_name, announced, removed, expected) => {
    expect(announcedBound(announced, backups, new Set(removed))).toBe(expected);
  });
});
