import { describe, expect, it } from "vitest";
import {
  extend,
  fieldsOf,
  integer,
  listOf,
  object,
  required,
  string,
  use,
} from "../../../constructs/crds/parts/builders.ts";
import { defineKind } from "../../../constructs/crds/parts/definition.ts";
import { immutable, notBoth, uniqueBy } from "../../../constructs/crds/parts/rules.ts";

describe("builders", () => {
  it("lists required fields and passes limits, defaults and rules through", () => {
    const rules = [immutable("size is immutable")];
    const part = object("A part.", {
      name: required(string("Its name.", { minLength: 1 })),
      size: integer("Its size.", { bits: 32, minimum: 1, default: 2, rules }),
    });
    expect(part).toEqual({
      type: "object",
      description: "A part.",
      required: ["name"],
      properties: {
        name: { type: "string", description: "Its name.", minLength: 1 },
        size: {
          type: "integer",
          description: "Its size.",
          format: "int32",
          minimum: 1,
          default: 2,
          "x-kubernetes-validations": rules,
        },
      },
    });
  });

  it("marks lists with keys and atomic lists", () => {
    const items = object("An item.", { name: required(string("Its name.")) });
    expect(listOf("Items.", items, { keys: ["name"], maxItems: 2 })).toEqual({
      type: "array",
      description: "Items.",
      items,
      maxItems: 2,
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["name"],
    });
    expect(listOf("Items.", items, { atomic: true })).toHaveProperty("x-kubernetes-list-type", "atomic");
  });

  it("uses, extends and takes apart a part without changing it", () => {
    const part = object("A part.", { name: required(string("Its name.")) });
    const before = structuredClone(part);
    expect(use("Here.", part, { default: { name: "a" } })).toMatchObject({
      description: "Here.",
      default: { name: "a" },
    });
    expect(extend(part, { size: required(integer("Its size.")) })).toMatchObject({ required: ["name", "size"] });
    expect(object("A part.", fieldsOf(part))).toEqual(part);
    expect(part).toEqual(before);
  });

  it("names plural, list and subresources after the kind", () => {
    const crd = defineKind({
      group: "g",
      kind: "ThingOne",
      shortNames: ["to"],
      categories: ["all"],
      description: "A thing.",
    });
    expect(crd.metadata.name).toBe("thingones.g");
    expect(crd.spec.names).toEqual({
      kind: "ThingOne",
      listKind: "ThingOneList",
      plural: "thingones",
      singular: "thingone",
      shortNames: ["to"],
      categories: ["all"],
    });
    expect(crd.spec.versions[0].subresources).toEqual({});
  });

  it("writes the common rules", () => {
    expect(notBoth("a", "b", "no").rule).toBe("!(has(self.a) && has(self.b))");
    expect(uniqueBy("key", "no").rule).toBe("self.all(e, self.filter(f, f.key==e.key).size() == 1)");
  });
});
