import { describe, expect, it } from "vitest";
import type { OpenApiDefinitions, OpenApiSchema } from "../../../constructs/generate/core/document.ts";
import { convertCoreTypes } from "../../../constructs/generate/core/rules.ts";

const ref = (name: string) => ({ allOf: [{ $ref: `#/components/schemas/${name}` }], default: {} }) as OpenApiSchema;

function convert(definition: OpenApiSchema, others: OpenApiDefinitions = {}): unknown {
  return convertCoreTypes({ a: definition, ...others }, ["a"]).get("a");
}

describe("convertCoreTypes", () => {
  it("keeps shape and merge markers, drops descriptions, words and patch hints", () => {
    const list = {
      type: "array",
      description: "theirs",
      items: { type: "string", default: "" },
      "x-kubernetes-list-type": "atomic",
      "x-kubernetes-patch-strategy": "merge",
    };
    const word = { type: "string", enum: ["A", "B"], description: "theirs" };
    expect(convert({ type: "object", description: "theirs", properties: { list, word } })).toEqual({
      type: "object",
      properties: {
        list: { type: "array", items: { type: "string" }, "x-kubernetes-list-type": "atomic" },
        word: { type: "string" },
      },
    });
  });

  it("keeps a default on an optional scalar only", () => {
    const properties = {
      needed: { type: "integer", format: "int32", default: 0 },
      protocol: { type: "string", default: "TCP" },
      part: ref("b"),
    };
    expect(convert({ type: "object", required: ["needed"], properties }, { b: { type: "object" } })).toEqual({
      type: "object",
      required: ["needed"],
      properties: {
        needed: { type: "integer", format: "int32" },
        protocol: { type: "string", default: "TCP" },
        part: { reference: "b" },
      },
    });
  });

  it("drops defaults that Go writes by the name of a constant", () => {
    const name = "io.k8s.api.core.v1.AzureDiskVolumeSource";
    const properties = {
      kind: { type: "string", default: "Shared" },
      fsType: { type: "string", default: "ext4" },
    };
    expect(convertCoreTypes({ [name]: { type: "object", properties } }, [name]).get(name)).toEqual({
      type: "object",
      properties: { kind: { type: "string" }, fsType: { type: "string", default: "ext4" } },
    });
  });

  it("makes a struct that embeds a local reference an atomic map", () => {
    const name = { type: "string", default: "", description: "Name of the referent." };
    const reference = { type: "object", properties: { name }, "x-kubernetes-map-type": "atomic" };
    const others = { "io.k8s.api.core.v1.LocalObjectReference": reference };
    expect(convert({ type: "object", properties: { name } }, others)).toHaveProperty("x-kubernetes-map-type", "atomic");
    const own = { ...name, description: "Name of something else." };
    expect(convert({ type: "object", properties: { name: own } }, others)).not.toHaveProperty("x-kubernetes-map-type");
  });

  it("leaves ObjectMeta open and lists what is used before its users", () => {
    const meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    const definitions: OpenApiDefinitions = {
      a: { type: "object", properties: { b: ref("b"), metadata: ref(meta) } },
      b: { type: "object", properties: { c: { type: "array", items: ref("c") } } },
      c: { type: "object" },
    };
    const converted = convertCoreTypes(definitions, ["a"]);
    expect([...converted.keys()]).toEqual(["c", "b", "a"]);
    expect(converted.get("a")).toHaveProperty(["properties", "metadata"], { type: "object" });
  });

  it("refuses a type that contains itself and a type that is not there", () => {
    expect(() => convert({ type: "object", properties: { again: ref("a") } })).toThrow("Core type a contains itself");
    expect(() => convert({ type: "object", properties: { gone: ref("b") } })).toThrow("has no core type b");
  });
});
