import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatCustomConf, parseSettings, quoteSetting, unquoteSetting } from "../../../src/postgres/configuration.ts";
import { formatConninfo, parseConninfo } from "../../../src/postgres/conninfo.ts";
import { compareLsn, formatLsn, lsnDistance, parseLsn } from "../../../src/postgres/lsn.ts";
import { encodeScramPassword, isEncodedPassword, parseScramPassword } from "../../../src/postgres/scram.ts";
import { joinShellWords, splitShellWords } from "../../../src/postgres/shell-words.ts";
import { sanitizeSlotName, slotNameOf } from "../../../src/postgres/slots.ts";
import {
  formatWalSegment,
  nextWalSegment,
  parseWalSegment,
  previousWalSegment,
  walSegmentOfLsn,
  walSegmentStart,
} from "../../../src/postgres/wal-name.ts";

const anyText = fc.string({ unit: "binary" });
const lsn = fc.bigInt({ min: 0n, max: 0xffffffffffffffffn });
const segmentBytes = fc.integer({ min: 20, max: 30 }).map((power) => 2 ** power);
const settingName = fc.stringMatching(/^[a-z_][a-z0-9_]{0,10}(\.[a-z_][a-z0-9_]{0,10})?$/);

describe("configuration text", () => {
  it("gives each value back", () => {
    fc.assert(fc.property(anyText, (value) => unquoteSetting(quoteSetting(value)) === value));
    fc.assert(fc.property(anyText, (value) => !quoteSetting(value).includes("\n")));
  });

  it("gives the settings back, whatever their order was", () => {
    const entries = fc.dictionary(
      settingName,
      fc.string().filter((value) => !value.includes("\r")),
    );
    fc.assert(
      fc.property(entries, (record) => {
        const { text, sha256 } = formatCustomConf(new Map(Object.entries(record)));
        const reversed = formatCustomConf(new Map(Object.entries(record).reverse()));
        expect(reversed.text).toBe(text);
        const read = parseSettings(text);
        expect(read.get("cnpg.config_sha256")).toBe(sha256);
        for (const [name, value] of Object.entries(record)) {
          if (name !== "cnpg.config_sha256") expect(read.get(name)).toBe(value);
        }
      }),
    );
  });
});

describe("connection text", () => {
  it("gives the parameters back", () => {
    const parameters = fc.dictionary(fc.stringMatching(/^[a-z_][a-z0-9_]{0,10}$/), fc.string());
    fc.assert(
      fc.property(parameters, (record) => {
        expect(parseConninfo(formatConninfo(record))).toEqual({ ...record });
      }),
    );
  });
});

describe("shell words", () => {
  it("come back as they were quoted", () => {
    fc.assert(
      fc.property(fc.array(anyText), (words) => {
        expect(splitShellWords(joinShellWords(words))).toEqual(words);
      }),
    );
  });
});

describe("LSN", () => {
  it("keeps the order of numbers and comes back as it was written", () => {
    fc.assert(
      fc.property(lsn, lsn, (a, b) => {
        expect(parseLsn(formatLsn(a))).toBe(a);
        expect(compareLsn(formatLsn(a), formatLsn(b))).toBe(a < b ? -1 : a > b ? 1 : 0);
        expect(lsnDistance(formatLsn(a), formatLsn(b))).toBe(b - a);
      }),
    );
  });
});

describe("WAL segments", () => {
  it("hold the position they are named for, and neighbours touch", () => {
    fc.assert(
      fc.property(lsn, segmentBytes, fc.integer({ min: 1, max: 0x7fffffff }), (position, bytes, timeline) => {
        const segment = walSegmentOfLsn(timeline, position, bytes);
        expect(parseWalSegment(formatWalSegment(segment))).toEqual(segment);
        const start = walSegmentStart(segment, bytes);
        expect(start <= position && position < start + BigInt(bytes)).toBe(true);
        const next = nextWalSegment(segment, bytes);
        if (!next) return;
        expect(previousWalSegment(next, bytes)).toEqual(segment);
        expect(walSegmentStart(next, bytes)).toBe(start + BigInt(bytes));
        expect(formatWalSegment(next) > formatWalSegment(segment)).toBe(true);
      }),
    );
  });
});

describe("slot names", () => {
  it("have only allowed characters", () => {
    fc.assert(fc.property(fc.string(), (name) => /^[a-z0-9_]+$/.test(slotNameOf(name))));
    fc.assert(fc.property(fc.string(), (name) => sanitizeSlotName(sanitizeSlotName(name)) === sanitizeSlotName(name)));
  });
});

describe("SCRAM", () => {
  it("keeps salt and rounds readable and is known as encoded", () => {
    const salt = fc.uint8Array({ minLength: 16, maxLength: 16 });
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), salt, (password, bytes) => {
        const encoded = encodeScramPassword(password, bytes, 1);
        expect(isEncodedPassword(encoded)).toBe(true);
        expect(parseScramPassword(encoded)?.salt).toEqual(Buffer.from(bytes));
      }),
      { numRuns: 50 },
    );
  });
});
