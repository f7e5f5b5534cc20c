import { describe, expect, test } from "vitest";
import { judgeOperatingSystem, parseOsRelease } from "../../../../src/plan/instance/operating-system.ts";

describe("judgeOperatingSystem", () => {
  const judge = (version: string, day: string) =>
    judgeOperatingSystem(`NAME="Debian GNU/Linux"\nVERSION_ID="0"\nVERSION="${version}"\n`, Date.parse(day)).kind;
  test.each<[string, string, string]>([
    ["10 (buster)", "2022-09-09", "supported"],
    ["10 (buster)", "2022-09-10", "deprecated"],
    ["10 (buster)", "2024-06-30T23:59:59Z", "deprecated"],
    ["10 (buster)", "2024-07-01", "unsupported"],
    ["11 (bullseye)", "2024-08-13", "supported"],
    ["11 (bullseye)", "2024-08-14", "deprecated"],
    ["11 (bullseye)", "2026-09-01", "unsupported"],
    ["12 (bookworm)", "2026-06-09", "supported"],
    ["12 (bookworm)", "2026-06-10", "deprecated"],
    ["12 (bookworm)", "2028-07-01", "unsupported"],
    ["13 (trixie)", "2026-11-30", "supported"],
    ["13 (trixie)", "2028-08-09", "deprecated"],
    ["13 (trixie)", "2030-07-01", "unsupported"],
    ["14 (forky)", "2026-11-30", "unknown"],
    ["24.04 LTS (Noble Numbat)", "2026-11-30", "unknown"],
  ])("%s on %s is %s", (version, day, expected) => {
    expect(judge(version, day)).toBe(expected);
  });

  test("the verdict carries the dates, or the version that the table lacks", () => {
    const trixie = { version: "13 (trixie)", deprecatedFrom: "2028-08-09", supportedUntil: "2030-06-30" };
    expect(judgeOperatingSystem("VERSION='13 (trixie)'", 0)).toEqual({ kind: "supported", release: trixie });
    expect(judgeOperatingSystem("NAME=Rolling", 0)).toEqual({ kind: "unknown", version: "" });
  });
});

test("an os-release file is read with every kind of quotes", () => {
  const text = '# a comment\nA=plain\nB=\'single "x"\'\nC="double \\"x\\" \\$y"  \n\nD=\nnot an assignment\n';
  expect([...parseOsRelease(text)]).toEqual([
    ["A", "plain"],
    ["B", 'single "x"'],
    ["C", 'double "x" $y'],
    ["D", ""],
  ]);
});
