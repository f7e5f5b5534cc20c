import { describe, expect, it } from "vitest";
import digests from "../../../constructs/crds/digests.json" with { type: "json" };
import { customResourceDefinitions } from "../../../constructs/crds/index.ts";
import { digestCrd, normalizeCrd } from "../../../constructs/generate/digests.ts";

describe("digests of the definitions", () => {
  it("are those of the compatible definitions, which npm run check:reference writes down", () => {
    const own = Object.fromEntries(customResourceDefinitions.map((crd) => [crd.metadata.name, digestCrd(crd)]));
    expect(own).toEqual(digests);
  });

  it("do not change with descriptions, key order or the order of words", () => {
    const one = { metadata: { name: "a" }, spec: { a: { description: "x", enum: ["b", "a"] }, b: 1 } };
    const same = { metadata: { name: "a" }, spec: { b: 1, a: { enum: ["a", "b"], description: "y" } } };
    expect(digestCrd(one)).toBe(digestCrd(same));
  });

  it("change with a default, a rule or a field that is called description", () => {
    const field = (fields: object) => ({ metadata: { name: "a" }, spec: { properties: fields } });
    const digestsOf = [
      field({ a: { type: "string" } }),
      field({ a: { type: "string", default: "x" } }),
      field({ a: { type: "string", "x-kubernetes-validations": [{ rule: "self != ''" }] } }),
      field({ a: { type: "string" }, description: { type: "string", description: "free text" } }),
    ].map(digestCrd);
    expect(new Set(digestsOf).size).toBe(digestsOf.length);
  });

  it("keeps lists of objects in their order", () => {
    const crd = { metadata: { name: "a" }, spec: { rules: [{ rule: "b" }, { rule: "a" }] } };
    expect(normalizeCrd(crd)).toEqual({ rules: [{ rule: "b" }, { rule: "a" }] });
  });
});
