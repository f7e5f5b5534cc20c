import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { buildJsonPatch, encodeJsonPatch } from "../../../../src/plugin/framework/json-patch.ts";
import { applyLifecyclePatch } from "../../../../src/rpc/lifecycle-patch.ts";

describe("building a JSON patch", () => {
  it.each<[string, object, object, object[]]>([
    ["nothing changed", { a: [1, { b: 2 }] }, { a: [1, { b: 2 }] }, []],
    ["a list that was not there", {}, { a: [1] }, [{ op: "add", path: "/a", value: [1] }]],
    [
      "a longer list",
      { a: [1] },
      { a: [1, 2, 3] },
      [
        { op: "add", path: "/a/1", value: 2 },
        { op: "add", path: "/a/2", value: 3 },
      ],
    ],
    [
      "a shorter list",
      { a: [1, 2, 3] },
      { a: [1] },
      [
        { op: "remove", path: "/a/2" },
        { op: "remove", path: "/a/1" },
      ],
    ],
    ["a changed element", { a: [{ b: 1 }] }, { a: [{ b: 2 }] }, [{ op: "replace", path: "/a/0/b", value: 2 }]],
    ["another kind of value", { a: [1] }, { a: { b: 1 } }, [{ op: "replace", path: "/a", value: { b: 1 } }]],
    [
      "null and absence",
      { a: null },
      { b: null },
      [
        { op: "remove", path: "/a" },
        { op: "add", path: "/b", value: null },
      ],
    ],
    ["an undefined member", { a: 1 }, { a: undefined }, [{ op: "remove", path: "/a" }]],
    ["names that need escapes", {}, { "a/b~c": 1 }, [{ op: "add", path: "/a~1b~0c", value: 1 }]],
    [
      "a number that was left out because it was zero",
      { a: {} },
      { a: { n: 1 } },
      [{ op: "add", path: "/a/n", value: 1 }],
    ],
  ])("%s", (_, before, after, patch) => {
    expect(buildJsonPatch(before, after)).toEqual(patch);
  });

  it("and applying it gives the object it was built from", () => {
    const object = fc.dictionary(fc.string(), fc.jsonValue());
    fc.assert(
      fc.property(object, object, (before, after) => {
        const [from, to] = [JSON.parse(JSON.stringify(before)), JSON.parse(JSON.stringify(after))];
        const patch = encodeJsonPatch(buildJsonPatch(from, to));
        expect(applyLifecyclePatch(from, patch)).toEqual(to);
      }),
    );
  });

  it("sends nothing when there is nothing to change", () => {
    expect(encodeJsonPatch(undefined)).toHaveLength(0);
    expect(encodeJsonPatch([])).toHaveLength(0);
  });
});
