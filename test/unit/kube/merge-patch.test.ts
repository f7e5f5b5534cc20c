import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { applyMergePatch, diffMergePatch, jsonEqual } from "../../../src/kube/merge-patch.ts";

/** Objects as Kubernetes has them: null never is a value of its own. */
const json = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    fc.string(),
    fc.integer(),
    fc.boolean(),
    fc.array(tie("value"), { maxLength: 3 }),
    tie("object"),
  ),
  object: fc.dictionary(fc.constantFrom("a", "b", "c", "d"), tie("value"), { maxKeys: 4, noNullPrototype: true }),
}));

describe("diffMergePatch", () => {
  it.each([
    ["nothing", { a: 1 }, { a: 1 }, undefined],
    ["an added field", { a: 1 }, { a: 1, b: 2 }, { b: 2 }],
    ["a removed field", { a: 1, b: 2 }, { a: 1 }, { b: null }],
    ["a field set to undefined", { a: 1, b: 2 }, { a: 1, b: undefined }, { b: null }],
    ["a nested field", { s: { x: 1, y: 2 } }, { s: { x: 1, y: 3 } }, { s: { y: 3 } }],
    ["a list as a whole", { l: [1, 2] }, { l: [1] }, { l: [1] }],
    ["fields in another order", { s: { x: 1, y: 2 } }, { s: { y: 2, x: 1 } }, undefined],
    ["a list of objects in another field order", { l: [{ x: 1, y: 2 }] }, { l: [{ y: 2, x: 1 }] }, undefined],
  ])("finds %s", (_name, before, after, patch) => {
    expect(diffMergePatch(before, after)).toEqual(patch);
  });

  it("leads from any object to any other, and to nothing when they are equal", () => {
    fc.assert(
      fc.property(json.object, json.object, (before, after) => {
        const patch = diffMergePatch(before, after);
        expect(jsonEqual(applyMergePatch(before, patch ?? {}), after)).toBe(true);
        expect(patch === undefined).toBe(jsonEqual(before, after));
      }),
    );
  });

  it("names only fields that differ", () => {
    fc.assert(
      fc.property(json.object, json.object, (before, after) => {
        for (const key of Object.keys(diffMergePatch(before, after) ?? {})) {
          expect(jsonEqual((before as Record<string, unknown>)[key], (after as Record<string, unknown>)[key])).toBe(
            false,
          );
        }
      }),
    );
  });
});
