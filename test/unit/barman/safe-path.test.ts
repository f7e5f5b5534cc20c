import { expect, test } from "vitest";
import { checkEntryPath, foldersAbove } from "../../../src/barman/safe-path.ts";

test.each([
  [".", ""],
  ["./", ""],
  ["./PG_VERSION", "PG_VERSION"],
  ["base//1/./2", "base/1/2"],
  ["base/..x", "base/..x"],
])("%s is %s", (name, path) => {
  expect(checkEntryPath(name)).toEqual({ path });
});

test.each(["/etc/passwd", "../x", "base/../../x", "..", "a\0b"])("%j is refused", (name) => {
  expect(checkEntryPath(name)).toHaveProperty("error");
});

test("the folders above a path, outermost first", () => {
  expect(foldersAbove("a/b/c")).toEqual(["a", "a/b"]);
  expect(foldersAbove("a")).toEqual([]);
});
