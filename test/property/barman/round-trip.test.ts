import fc from "fast-check";
import { expect, test } from "vitest";
import { emptyBackupInfo, formatBackupInfo, parseBackupInfo } from "../../../src/barman/backup-info.ts";
import { chooseLookAhead } from "../../../src/barman/look-ahead.ts";
import { formatPythonLiteral, type PythonValue, parsePythonLiteral } from "../../../src/barman/python-literal.ts";
import {
  classifyBackups,
  parseRetentionPolicy,
  planRetention,
  planWalRetention,
} from "../../../src/barman/retention.ts";
import { findMissingSegments } from "../../../src/barman/wal-coverage.ts";
import { formatWalSegment, walSegmentOfLsn } from "../../../src/postgres/wal-name.ts";
import { aBackup, aCatalog } from "../../support/backup-catalog.ts";

const text = fc.string({ unit: "binary" });
const { literal } = fc.letrec<{ literal: PythonValue }>((tie) => ({
  literal: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constant<PythonValue>({ kind: "none" }),
    fc.boolean().map((value): PythonValue => ({ kind: "bool", value })),
    fc.maxSafeInteger().map((value): PythonValue => ({ kind: "int", text: String(value) })),
    text.map((value): PythonValue => ({ kind: "string", value })),
    fc.array(tie("literal")).map((items): PythonValue => ({ kind: "list", items })),
    fc.array(tie("literal")).map((items): PythonValue => ({ kind: "tuple", items })),
    fc
      .array(
        fc.tuple(
          text.map((value): PythonValue => ({ kind: "string", value })),
          tie("literal"),
        ),
      )
      .map((entries): PythonValue => ({ kind: "dict", entries })),
  ),
}));

test("every literal is read back as it was written", () => {
  fc.assert(
    fc.property(literal, (value) => {
      expect(parsePythonLiteral(formatPythonLiteral(value))).toEqual(value);
    }),
  );
});

test("a backup.info holds any text in its quoted values", () => {
  const oid = fc.integer({ min: 1, max: 2 ** 31 });
  const tablespace = fc.record({ name: text, oid, location: text });
  fc.assert(
    fc.property(text, fc.array(tablespace), fc.array(text), (backupLabel, tablespaces, includedFiles) => {
      const info = { ...emptyBackupInfo, status: "DONE" as const, backupLabel, tablespaces, includedFiles };
      const written = formatBackupInfo(info);
      expect(written.trimEnd().split("\n")).toHaveLength(33);
      expect(parseBackupInfo(written)).toEqual(info);
    }),
  );
});

test("a row of segments with some taken out lacks exactly those", () => {
  const size = fc.constantFrom(1 << 20, 16 << 20, 64 << 20, 1 << 30);
  fc.assert(
    fc.property(size, fc.bigInt({ min: 0n, max: 1n << 40n }), fc.uniqueArray(fc.nat(39)), (bytes, lsn, holes) => {
      const row = Array.from({ length: 40 }, (_, at) => walSegmentOfLsn(1, lsn + BigInt(at * bytes), bytes));
      const present = new Set(row.filter((_, at) => !holes.includes(at)).map(formatWalSegment));
      const [from, to] = [row[0], row.at(-1)];
      if (!from || !to) throw new Error("the row is empty");
      const missing = findMissingSegments(present, { from, to }, bytes);
      expect(missing).toEqual(row.filter((_, at) => holes.includes(at)).map(formatWalSegment));
    }),
  );
});

test("a policy never leaves the window without the backup that its first moment needs, and keeps that backup's WAL", () => {
  const dayMs = 86_400_000;
  const nowMs = Date.parse("2026-06-01T00:00:00Z");
  const status = fc.constantFrom("DONE" as const, "FAILED" as const, "STARTED" as const);
  const keep = fc.constantFrom(undefined, undefined, undefined, "full" as const, "standalone" as const);
  const spec = fc.record({ hours: fc.nat(24 * 30), status, keep });
  fc.assert(
    fc.property(
      fc.uniqueArray(spec, { selector: ({ hours }) => hours, maxLength: 12 }),
      fc.integer({ min: 1, max: 20 }),
      (specs, days) => {
        const backups = specs.map(({ hours, status: state, keep: kept }) => {
          const begin = new Date(nowMs - hours * 3_600_000).toISOString();
          const id = begin.slice(0, 19).replaceAll("-", "").replaceAll(":", "");
          const wal = formatWalSegment({ timeline: 1, log: 0, segment: 24 * 31 - hours });
          return aBackup(id, {
            begin,
            end: state === "STARTED" ? null : begin,
            status: state,
            beginWal: wal,
            endWal: wal,
            ...(kept ? { keep: kept } : {}),
          });
        });
        const catalog = aCatalog(backups);
        const policy = parseRetentionPolicy(`${days}d`);
        if (!policy) throw new Error("the policy is none");
        const plan = planRetention(catalog, policy, { nowMs });
        if (plan.kind !== "delete") throw new Error(plan.reason);
        const gone = new Set(plan.backups.map(({ id }) => id));
        const done = catalog.backups.filter(({ info }) => info.status === "DONE");
        const edge = nowMs - days * dayMs;
        const covering = done.filter(({ info }) => (info.endTime?.epochMicros ?? 0) / 1000 < edge).at(-1);
        const needed = done.filter(({ id }) => !covering || id >= covering.id);
        for (const { id } of needed) expect(gone.has(id)).toBe(false);
        for (const { id, keep: kept } of done) if (kept) expect(gone.has(id)).toBe(false);
        const wal = planWalRetention(catalog.backups, gone);
        for (const { info, id } of plan.kept)
          if (info.status === "DONE") expect([id, wal.isObsolete(info.beginWal ?? "")]).toEqual([id, false]);
        expect(classifyBackups(catalog, policy, { nowMs }).size).toBe(catalog.backups.length);
      },
    ),
  );
});

test("looking ahead never takes more than it may, nothing twice, and always in order", () => {
  const number = fc.integer({ min: 0, max: 60 });
  const names = fc
    .uniqueArray(number)
    .map((list) => list.map((segment) => formatWalSegment({ timeline: 1, log: 0, segment })));
  fc.assert(
    fc.property(names, names, number, fc.nat(10), (ready, takenList, segment, ahead) => {
      const requested = formatWalSegment({ timeline: 1, log: 0, segment });
      const taken = new Set(takenList);
      const chosen = chooseLookAhead({ requested, ready, taken, ahead });
      expect(chosen).toEqual([...chosen].sort());
      for (const each of chosen) expect(each > requested && ready.includes(each) && !taken.has(each)).toBe(true);
      const under = ready.filter((each) => each > requested && taken.has(each)).length;
      expect(chosen.length).toBeLessThanOrEqual(Math.max(0, ahead - under));
    }),
  );
});
