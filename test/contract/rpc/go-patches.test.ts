import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildJsonPatch } from "../../../src/plugin/framework/json-patch.ts";
import { applyLifecyclePatch } from "../../../src/rpc/lifecycle-patch.ts";
import { buildGoPeer, type GoPeer, type GoProgram, startGoPeer } from "./go-peer.ts";

let program: GoProgram;
let go: GoPeer;
beforeAll(async () => {
  program = await buildGoPeer();
  go = startGoPeer(program, "patch", {});
});
afterAll(async () => {
  await go.stop();
  await program.remove();
});

type Answer = { document?: object; error?: string };

const document = { metadata: { name: "p", labels: { "a/b": "c" } }, spec: { list: [1, 2, 3], zero: 0, nothing: null } };

function ours(patch: object[]): Answer {
  try {
    return { document: applyLifecyclePatch<object>(document, JSON.stringify(patch)) };
  } catch (error) {
    return { error: String(error) };
  }
}

describe("our patch engine and the one of Go operators", () => {
  it.each<[string, object[]]>([
    ["add a member", [{ op: "add", path: "/spec/x", value: { y: [1] } }]],
    ["add null", [{ op: "add", path: "/spec/x", value: null }]],
    ["add at an index", [{ op: "add", path: "/spec/list/1", value: 9 }]],
    ["add at the end", [{ op: "add", path: "/spec/list/-", value: 9 }]],
    ["add behind the last", [{ op: "add", path: "/spec/list/3", value: 9 }]],
    ["add too far", [{ op: "add", path: "/spec/list/4", value: 9 }]],
    ["add without parent", [{ op: "add", path: "/spec/x/y", value: 9 }]],
    ["add without value", [{ op: "add", path: "/spec/x" }]],
    ["add below a number", [{ op: "add", path: "/spec/zero/x", value: 1 }]],
    ["add counting from the end", [{ op: "add", path: "/spec/list/-1", value: 9 }]],
    ["remove", [{ op: "remove", path: "/spec/list/2" }]],
    ["remove what is not there", [{ op: "remove", path: "/spec/x" }]],
    ["remove counting from the end", [{ op: "remove", path: "/spec/list/-1" }]],
    ["replace", [{ op: "replace", path: "/spec/zero", value: 1 }]],
    ["replace an element", [{ op: "replace", path: "/spec/list/0", value: 7 }]],
    ["replace what is not there", [{ op: "replace", path: "/spec/x", value: 1 }]],
    ["replace an escaped member", [{ op: "replace", path: "/metadata/labels/a~1b", value: "d" }]],
    ["move", [{ op: "move", from: "/spec/list/0", path: "/spec/first" }]],
    ["copy", [{ op: "copy", from: "/spec/list", path: "/spec/copy" }]],
    ["test, true", [{ op: "test", path: "/spec/list", value: [1, 2, 3] }]],
    ["test, false", [{ op: "test", path: "/spec/list", value: [1, 2] }]],
    ["an unknown op", [{ op: "merge", path: "/spec", value: {} }]],
    [
      "a good and a bad one",
      [
        { op: "add", path: "/a", value: 1 },
        { op: "remove", path: "/b" },
      ],
    ],
  ])("agree: %s", async (_, patch) => {
    const theirs = await go.ask<Answer>({ document, patch });
    const mine = ours(patch);
    expect(mine.document).toEqual(theirs.document);
    expect(mine.error === undefined, `${mine.error} against ${theirs.error}`).toBe(theirs.error === undefined);
  });

  it("agree on a patch that we build, which brings a sidecar in", async () => {
    const before = { spec: { containers: [{ name: "postgres", args: ["a"] }], volumes: [{ name: "v" }], n: 0 } };
    const after = {
      spec: {
        initContainers: [{ name: "sidecar", restartPolicy: "Always" }],
        containers: [{ name: "postgres", args: [], volumeMounts: [{ name: "plugins" }] }],
        volumes: [{ name: "v" }, { name: "plugins", emptyDir: {} }],
        n: 1,
      },
    };
    const patch = buildJsonPatch(before, after);
    expect(await go.ask({ document: before, patch })).toEqual({ document: after });
  });
});
