import { describe, expect, it } from "vitest";
import { applyLifecyclePatch } from "../../../src/rpc/lifecycle-patch.ts";

const pod = () => ({ metadata: { name: "p" }, spec: { containers: ["a", "b", "c"], "a/b": { "m~n": 1 } } });
const apply = (...operations: object[]) => applyLifecyclePatch<object>(pod(), JSON.stringify(operations));
const spec = (containers: string[]) => ({ ...pod(), spec: { ...pod().spec, containers } });

describe("a plugin's patch", () => {
  it.each<[string, object, object]>([
    ["adds at an index", { op: "add", path: "/spec/containers/1", value: "x" }, spec(["a", "x", "b", "c"])],
    ["adds at the end", { op: "add", path: "/spec/containers/-", value: "x" }, spec(["a", "b", "c", "x"])],
    ["adds behind the last", { op: "add", path: "/spec/containers/3", value: "x" }, spec(["a", "b", "c", "x"])],
    ["adds counting from the end", { op: "add", path: "/spec/containers/-1", value: "x" }, spec(["a", "b", "c", "x"])],
    ["removes", { op: "remove", path: "/spec/containers/0" }, spec(["b", "c"])],
    ["removes counting from the end", { op: "remove", path: "/spec/containers/-1" }, spec(["a", "b"])],
    ["replaces", { op: "replace", path: "/spec/containers/2", value: "x" }, spec(["a", "b", "x"])],
    ["moves", { op: "move", from: "/spec/containers/0", path: "/spec/containers/-" }, spec(["b", "c", "a"])],
    ["copies", { op: "copy", from: "/spec/containers/0", path: "/spec/containers/1" }, spec(["a", "a", "b", "c"])],
    ["tests", { op: "test", path: "/spec/a~1b/m~0n", value: 1 }, pod()],
    ["adds null", { op: "add", path: "/x", value: null }, { ...pod(), x: null }],
    ["replaces a null", { op: "replace", path: "/metadata/name", value: null }, { ...pod(), metadata: { name: null } }],
    ["replaces the object", { op: "replace", path: "", value: { a: 1 } }, { a: 1 }],
  ])("%s", (_, operation, expected) => {
    expect(apply(operation)).toEqual(expected);
  });

  it.each<[string, object, string]>([
    ["an unknown op", { op: "merge", path: "/x", value: 1 }, 'operation 0 has the unknown op "merge"'],
    ["no path", { op: "add", value: 1 }, "operation 0 has no path"],
    ["add without value", { op: "add", path: "/x" }, "(add /x) has no value"],
    ["replace without value", { op: "replace", path: "/spec" }, "(replace /spec) has no value"],
    ["move without from", { op: "move", path: "/x" }, "(move /x) has no from"],
    ["a path without slash", { op: "add", path: "x", value: 1 }, 'path x does not begin with "/"'],
    ["a missing parent", { op: "add", path: "/a/b", value: 1 }, '"a" does not exist'],
    ["a missing target of replace", { op: "replace", path: "/spec/x", value: 1 }, "/spec/x does not exist"],
    ["a missing target of remove", { op: "remove", path: "/spec/x" }, "/spec/x does not exist"],
    ["an index too high", { op: "add", path: "/spec/containers/4", value: 1 }, "outside of a list of 3"],
    ["an index too low", { op: "remove", path: "/spec/containers/-4" }, "outside of a list of 3"],
    ["an index with zeros", { op: "add", path: "/spec/containers/01", value: 1 }, "no index of a list"],
    ["the end of a list as target", { op: "remove", path: "/spec/containers/-" }, '"-" names no element'],
    ["a member of a text", { op: "add", path: "/metadata/name/x", value: 1 }, "holds no members"],
    ["a test that fails", { op: "test", path: "/metadata/name", value: "q" }, "has another value"],
    ["a move into itself", { op: "move", from: "/spec", path: "/spec/x" }, "cannot move into itself"],
    ["a removal of all", { op: "remove", path: "" }, "cannot be removed"],
    ["another kind of thing", { op: "replace", path: "", value: [1] }, "into something else"],
    ["a member of the prototype", { op: "replace", path: "/toString", value: 1 }, "/toString does not exist"],
  ])("with %s is refused", (_, operation, problem) => {
    expect(() => apply(operation)).toThrow(problem);
  });

  it("applies as a whole or not at all, and never to the object given", () => {
    const before = pod();
    const patch = JSON.stringify([
      { op: "remove", path: "/spec/containers/0" },
      { op: "remove", path: "/nothing" },
    ]);
    expect(() => applyLifecyclePatch(before, patch)).toThrow("operation 1 (remove)");
    expect(before).toEqual(pod());
  });

  it("is checked before its first operation", () => {
    expect(() => apply({ op: "remove", path: "/nothing" }, { op: "add", path: "/x" })).toThrow("operation 1");
  });

  it.each(["", " \n", "[]"])("%j changes nothing", (text) => {
    const before = pod();
    expect(applyLifecyclePatch(before, text)).toBe(before);
  });

  it.each(["{", "{}", "[1]", "null"])("%j is no patch", (text) => {
    expect(() => applyLifecyclePatch(pod(), text)).toThrow(/patch|operation 0/);
  });

  it("takes a member called __proto__ as data", () => {
    const result = apply({ op: "add", path: "/__proto__", value: { polluted: true } });
    expect(Object.keys(result)).toContain("__proto__");
    expect((result as { polluted?: boolean }).polluted).toBeUndefined();
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });
});
