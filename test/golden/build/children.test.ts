import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parseAllDocuments, stringify } from "yaml";
import { buildChildren } from "./children.ts";
import { goldenCases } from "./clusters.ts";

describe.each(goldenCases)("the children of $name", (golden) => {
  const file = new URL(`./${golden.name}.yaml`, import.meta.url);
  const children = buildChildren(golden);
  // To accept an intended change: UPDATE_GOLDEN=1, then review the difference of the files.
  if (process.env["UPDATE_GOLDEN"] === "1")
    writeFileSync(
      file,
      children
        .map((child) => stringify(child, { lineWidth: 0, sortMapEntries: true, aliasDuplicateObjects: false }))
        .join("---\n"),
    );

  const expected = parseAllDocuments(readFileSync(file, "utf8")).map((document) => document.toJS() as object);

  test("are the committed ones", () => {
    expect(children).toEqual(expected);
  });

  test("carry no empty field that the API server would see", () => {
    expect(JSON.parse(JSON.stringify(children))).toEqual(children);
  });
});
