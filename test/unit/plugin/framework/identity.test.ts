import { describe, expect, it } from "vitest";
import { compileMetadata, listServices } from "../../../../src/plugin/framework/identity.ts";

describe("a plugin's identity", () => {
  it("needs a name and a version only", () => {
    expect(compileMetadata({ name: "a.example.com", version: "1" })).toMatchObject({
      name: "a.example.com",
      displayName: "a.example.com",
      maturity: "alpha",
      manifest: {},
    });
  });

  it.each(["", "-a", "a-", ".a", "a/b", "a b", "a".repeat(64)])("refuses the name %j", (name) => {
    expect(() => compileMetadata({ name, version: "1" })).toThrow("use at most 63 letters");
  });

  it("accepts names of one letter and of 63", () => {
    expect(compileMetadata({ name: "a", version: "1" }).name).toBe("a");
    expect(compileMetadata({ name: "a".repeat(63), version: "1" }).name).toHaveLength(63);
  });

  it("claims what it has, in its own order, and its sidecars last", () => {
    const identity = { name: "a", version: "1" };
    expect(listServices(identity, {})).toEqual([]);
    expect(listServices({ ...identity, injectsJobSidecar: true }, { wal: {}, operator: {} })).toEqual([
      "TYPE_WAL_SERVICE",
      "TYPE_OPERATOR_SERVICE",
      "TYPE_INSTANCE_JOB_SIDECAR_INJECTION",
    ]);
  });
});
