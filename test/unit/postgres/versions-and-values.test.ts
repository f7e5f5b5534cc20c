import { describe, expect, it } from "vitest";
import { parseGoDuration } from "../../../src/postgres/go-duration.ts";
import { buildExtensionEnvironment } from "../../../src/postgres/image-extensions.ts";
import { imageMajor, parseImageReference } from "../../../src/postgres/image-version.ts";
import { buildInitdbArguments, buildInitdbFlags, formatInitdbFlags } from "../../../src/postgres/initdb-flags.ts";
import { usedExtensions } from "../../../src/postgres/managed-extensions.ts";
import { formatServerVersion, majorOfServerVersion, parsePgVersionFile } from "../../../src/postgres/pg-version.ts";
import { compileVersionRange, serverVersionOf } from "../../../src/postgres/semver-range.ts";
import { splitShellWords } from "../../../src/postgres/shell-words.ts";
import { parseMemory, parsePostgresBoolean } from "../../../src/postgres/values.ts";
import { aCluster } from "./a-cluster.ts";

describe("versions", () => {
  it.each([
    ["ghcr.io/cloudnative-pg/postgresql:18.4-system-trixie", 18],
    ["localhost:5000/pg:17", 17],
    ["localhost:5000/pg", undefined],
    ["pg:latest", undefined],
    ["pg:16.2@sha256:abc", 16],
    ["pg@sha256:abc", undefined],
  ])("major of image %s", (image, major) => {
    expect(imageMajor(image)).toBe(major);
  });

  it("splits image references", () => {
    expect(parseImageReference("r:5000/a/b:1@sha256:x")).toEqual({ name: "r:5000/a/b", tag: "1", digest: "sha256:x" });
  });

  it("reads PG_VERSION and server_version_num", () => {
    expect(parsePgVersionFile("17\n")).toBe(17);
    expect(parsePgVersionFile("")).toBeUndefined();
    expect(majorOfServerVersion(170012)).toBe(17);
    expect(formatServerVersion(170012)).toBe("17.12");
  });

  it.each([
    ["<17.0.0", 160004, true],
    ["<17.0.0", 170000, false],
    [">=17.0.0", 170012, true],
    [">=14.0.0 <16.0.0", 150003, true],
    [">=14.0.0 <16.0.0", 160000, false],
    ["<14.0.0 || >=17.0.0", 170001, true],
    ["<14.0.0||>=17.0.0", 150000, false],
    ["17.0.4", 170004, true],
    ["=17.0.4", 170005, false],
    ["!=17.0.4", 170004, false],
    ["!17.0.4", 170005, true],
    ["17.x", 170009, true],
    ["17.0.x", 180000, false],
    ["> 17.x", 170009, false],
    [">17.x", 180000, true],
    ["<=16.x", 160012, true],
    ["x", 130000, true],
  ])("range %s and %i", (range, version, expected) => {
    expect(compileVersionRange(range)?.(serverVersionOf(version))).toBe(expected);
  });

  it.each(["", "new", "17", "17.1", "<>17.0.0", ">=17.0.0 ||", "^17.0.0"])("%j is no range", (range) => {
    expect(compileVersionRange(range)).toBeUndefined();
  });
});

describe("values", () => {
  it.each([
    [["on", "ON", "true", "t", "tr", "yes", "y", "1", " on "], true],
    [["off", "of", "false", "f", "no", "n", "0"], false],
    [["", "o", "2", "enabled", "onn"], undefined],
  ])("booleans %j", (texts, expected) => {
    for (const text of texts) expect(parsePostgresBoolean(text)).toBe(expected);
  });

  it.each([
    ["128MB", 128n << 20n],
    ["1GB", 1n << 30n],
    ["8kB", 8192n],
    ["512B", 512n],
    ["2TB", 2n << 40n],
    ["16", 16n << 20n],
    ["1.5GB", 1610612736n],
    [" 1 GB ", 1n << 30n],
    ["1gb", undefined],
    ["-1MB", undefined],
    ["many", undefined],
  ])("memory %s", (text, expected) => {
    expect(parseMemory(text)).toBe(expected);
  });

  it("counts a bare number in the unit of the setting", () => {
    expect(parseMemory("1024", "kB")).toBe(1n << 20n);
  });

  it.each([
    ["1h2m3.5s", 3_723_500],
    ["1m3s", 63_000],
    ["-1.5h", -5_400_000],
    ["100us", 0.1],
    ["0", 0],
    [".5s", 500],
    ["", undefined],
    ["5", undefined],
    ["1d", undefined],
    ["s", undefined],
  ])("duration %s", (text, expected) => {
    expect(parseGoDuration(text)).toBe(expected);
  });
});

describe("shell words", () => {
  it.each([
    ["", []],
    ["  a   b\t'c d' ", ["a", "b", "c d"]],
    ["a'b'\"c\"d", ["abcd"]],
    ["'' \"\"", ["", ""]],
    ['"a\\"b\\\\c\\$d\\n"', ['a"b\\c$d\\n']],
    ["a\\ b \\'", ["a b", "'"]],
    ["a # comment\nb", ["a", "b"]],
    ["a#b", ["a#b"]],
    ["line\\\nbreak", ["linebreak"]],
  ])("splits %j", (text, words) => {
    expect(splitShellWords(text)).toEqual(words);
  });

  it.each(["'open", '"open', "end\\"])("refuses %j", (text) => {
    expect(() => splitShellWords(text)).toThrow(/shell text ends/);
  });
});

describe("initdb", () => {
  const initdb = {
    dataChecksums: true,
    encoding: "UTF8",
    localeCollate: "C",
    localeCType: "C",
    localeProvider: "icu",
    icuLocale: "de",
    icuRules: "& a < b",
    walSegmentSize: 32,
  };

  it("gets its flags in order, quoted", () => {
    const cluster = aCluster({ bootstrap: { initdb }, logLevel: "debug" });
    const flags = [
      "-k",
      "-d",
      "--encoding=UTF8",
      "--lc-collate=C",
      "--lc-ctype=C",
      "--locale-provider=icu",
      "--icu-locale=de",
      "--icu-rules=& a < b",
      "--wal-segsize=32",
    ];
    expect(buildInitdbFlags(cluster)).toEqual(flags);
    expect(buildInitdbArguments({ pgData: "/d", walDir: "/w", flags: formatInitdbFlags(cluster) })).toEqual([
      "--username",
      "postgres",
      "-D",
      "/d",
      "--waldir",
      "/w",
      ...flags,
    ]);
  });

  it("takes the old free list instead, and no odd segment size", () => {
    expect(buildInitdbFlags(aCluster({ bootstrap: { initdb: { ...initdb, options: ["-A", "md5"] } } }))).toEqual([
      "-A",
      "md5",
    ]);
    expect(buildInitdbFlags(aCluster({ bootstrap: { initdb: { walSegmentSize: 24 } } }))).toEqual([]);
    expect(buildInitdbFlags(aCluster())).toEqual([]);
  });
});

describe("extensions", () => {
  it("are in use when one of their parameters is given", () => {
    const names = (parameters: Record<string, string>) => usedExtensions(parameters).map(({ name }) => name);
    expect(names({ "pg_stat_statements.max": "1", "pgaudit.log": "x" })).toEqual(["pgaudit", "pg_stat_statements"]);
    expect(names({ pgaudit: "x", "pgauditlog.x": "y" })).toEqual([]);
  });

  it("add to the postmaster's environment, but never what is ours", () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the placeholder syntax of the API.
    const values = ["${image_root}/data", "$${image_root}"];
    const extensions = [
      {
        name: "gis",
        ld_library_path: ["system"],
        bin_path: ["bin"],
        env: [
          { name: "PROJ_LIB", value: values[0] ?? "" },
          { name: "LITERAL", value: values[1] ?? "" },
          { name: "PGDATA", value: "x" },
          { name: "path", value: "x" },
          { name: "cnpg_x", value: "x" },
        ],
      },
      { name: "late", env: [{ name: "PROJ_LIB", value: "last" }] },
    ];
    expect(buildExtensionEnvironment(extensions, "/extensions", { PATH: "/usr/bin" })).toEqual({
      PROJ_LIB: "last",
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the placeholder syntax of the API.
      LITERAL: "${image_root}",
      LD_LIBRARY_PATH: "/extensions/gis/system",
      PATH: "/usr/bin:/extensions/gis/bin",
    });
  });
});
