import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { phases } from "../../../src/api/phases.ts";

const documents = [
  "README.md",
  ...readdirSync("docs", { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
];

describe.each(documents)("%s", (document) => {
  const text = readFileSync(document, "utf8");

  it("links to files that exist", () => {
    const targets = [...text.matchAll(/\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)/g)].map((match) => match[1] ?? "");
    expect(targets.filter((target) => !existsSync(join(dirname(document), target)))).toEqual([]);
  });

  it("names scripts that exist", () => {
    const { scripts } = JSON.parse(readFileSync("package.json", "utf8")) as { scripts: Record<string, string> };
    const named = [...text.matchAll(/npm run (?:-s )?([a-z][a-z0-9:]*)/g)].map((match) => match[1] ?? "");
    expect(named.filter((script) => scripts[script] === undefined)).toEqual([]);
  });

  it("names no folder of a developer's machine", () => {
    expect(text.match(/(?<![\w.])\/(?:work|root|home|tmp|Users)\/\S*/g)).toBeNull();
  });
});

describe("README.md", () => {
  const text = readFileSync("README.md", "utf8");

  it("begins with the two commands", () => {
    expect(text).toMatch(/^# cnpg-ts\n\n```\nnpm start .*\nnpm test .*\n```\n/);
  });

  it("shows the quickstart example as it is", () => {
    const call = (source: string) => /export function quickstart[\s\S]*?\n\}\n/.exec(source)?.[0];
    expect(call(text)).toBeDefined();
    expect(call(text)).toBe(call(readFileSync("examples/quickstart.ts", "utf8")));
  });
});

it("docs/guide/operating.md explains phases that exist", () => {
  const section = /## Phases[\s\S]*?\n## /.exec(readFileSync("docs/guide/operating.md", "utf8"))?.[0] ?? "";
  const named = [...section.matchAll(/^\| `([^`]+)` \|/gm)].map((match) => match[1] ?? "");
  expect(named.length).toBeGreaterThan(15);
  expect(named.filter((phase) => !Object.values<string>(phases).includes(phase))).toEqual([]);
});
