import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { cacheKey, cacheRoot } from "../../../local/tools/cache.ts";
import { allTools, buildArguments, type GoTool } from "../../../local/tools/catalogue.ts";

const tool: GoTool = {
  name: "a",
  module: "m",
  package: "example.org/a",
  tags: "x y",
  variables: { v: "1" },
  about: "",
};

describe("building a tool", () => {
  it("passes tags and link-time values as one argument each", () => {
    expect(buildArguments(tool, "/out/a")).toEqual([
      "build",
      "-trimpath",
      "-tags",
      "x y",
      "-ldflags",
      "-s -w -X v=1",
      "-o",
      "/out/a",
      "example.org/a",
    ]);
  });

  it.each([...allTools])("$name is pinned by its module, or made of our own Go in it", ({ module, package: path }) => {
    const folder = `local/tools/${module}`;
    if (path.startsWith("./")) expect(existsSync(`${folder}/${path}/main.go`)).toBe(true);
    else expect(readFileSync(`${folder}/go.mod`, "utf8")).toContain(path);
  });
});

describe("the cache of built tools", () => {
  const key = cacheKey(["mod", "sum"], [tool], "x64");

  it.each([
    ["pinned version", cacheKey(["mod2", "sum"], [tool], "x64")],
    ["sum", cacheKey(["mod", "sum2"], [tool], "x64")],
    ["build flag", cacheKey(["mod", "sum"], [{ ...tool, tags: "x" }], "x64")],
    ["processor", cacheKey(["mod", "sum"], [tool], "arm64")],
    ["line of our own Go", cacheKey(["mod", "sum", "package main"], [tool], "x64")],
    ["place where a file ends", cacheKey(["mods", "um"], [tool], "x64")],
  ])("has another key for another %s", (_, other) => {
    expect(other).not.toBe(key);
  });

  it("has the same key for another progress text", () => {
    expect(cacheKey(["mod", "sum"], [{ ...tool, about: "an hour" }], "x64")).toBe(key);
  });

  it("lies where the user keeps caches", () => {
    expect(cacheRoot({ XDG_CACHE_HOME: "/c", HOME: "/h" })).toBe("/c/cnpg-ts");
    expect(cacheRoot({ HOME: "/h" })).toBe("/h/.cache/cnpg-ts");
  });
});
