import { expect, it } from "vitest";
import { debianMirror, ensureAptPackages, findMirror } from "../../../images/apt.ts";

it.each([
  ["one-line format", "deb http://mirror.test/debian bookworm main\n", "http://mirror.test/debian"],
  ["options", "deb [arch=amd64 signed-by=/k] http://a.test/d bookworm contrib main\n", "http://a.test/d"],
  [
    "the security suite first",
    "deb http://s.test/sec bookworm-security main\ndeb http://a.test/d bookworm main\n",
    "http://a.test/d",
  ],
  ["a source line", "deb-src http://a.test/d bookworm main\n", undefined],
  ["a comment", "# deb http://a.test/d bookworm main\n", undefined],
  ["another vendor", "deb https://node.test/x nodistro main\n", undefined],
  [
    "deb822 format",
    "Types: deb\n# http://old.test\nURIs: http://b.test/debian\nSuites: bookworm bookworm-updates\nComponents: main\n\nTypes: deb\nURIs: http://s.test/sec\nSuites: bookworm-security\nComponents: main\n",
    "http://b.test/debian",
  ],
])("finds the mirror: %s", (_name, text, mirror) => {
  expect(findMirror(text, "bookworm")).toBe(mirror);
});

it("finds this machine's mirror", async () => {
  expect(await debianMirror()).toMatch(/^https?:\/\//);
});

it("does nothing for packages that are installed", async () => {
  const lines: string[] = [];
  await ensureAptPackages(["bash", "coreutils"], (line) => lines.push(line));
  expect(lines).toEqual([]);
});

it("says which package it cannot get", async () => {
  await expect(ensureAptPackages(["cnpg-ts-no-such-package"])).rejects.toThrow("cnpg-ts-no-such-package");
});
