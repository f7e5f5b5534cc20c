import { describe, expect, it } from "vitest";
import { type CrdKind, evaluateCelRules, validateAgainstSchema } from "../../../../src/schema/crd/index.ts";
import { crdKinds, resolve, schemaOf } from "../../../../src/schema/crd/kinds.ts";
import type { Schema } from "../../../../src/schema/crd/structural-schema.ts";
import { celCases } from "../../crds/cel-cases.ts";
import { manifestOf, minimalSpecs } from "../../crds/minimal-specs.ts";

describe("evaluateCelRules", () => {
  it.each(celCases.map((one) => ({ ...one, title: `${one.kind} ${one.path}: ${one.message}` })))("$title", (one) => {
    const old = one.oldSpec ? manifestOf(one.kind, one.oldSpec) : undefined;
    if (old) expect(evaluateCelRules(one.kind, old)).toEqual([]);
    expect(evaluateCelRules(one.kind, manifestOf(one.kind, one.spec), old)).toEqual([
      { path: one.path, rule: "cel", message: one.message },
    ]);
    const bySchema = validateAgainstSchema(one.kind, manifestOf(one.kind, one.spec)).map(({ rule }) => rule);
    expect(bySchema).toEqual(one.alsoBySchema ? ["duplicate"] : []);
  });

  it("has a case for every rule of every kind", () => {
    const covered = celCases.map(
      ({ kind, path, message }) => `${kind} ${path.replaceAll(/\[\d+\]/g, "[]")}: ${message}`,
    );
    expect(covered.sort()).toEqual(crdKinds.flatMap(rulesOf).sort());
  });

  it.each(crdKinds)("accepts the smallest %s, new and unchanged", (kind) => {
    const object = manifestOf(kind, minimalSpecs[kind]);
    expect(evaluateCelRules(kind, object)).toEqual([]);
    expect(evaluateCelRules(kind, object, object)).toEqual([]);
  });

  it("lets an optional field that cannot be changed be added and removed", () => {
    const without = manifestOf("Cluster", minimalSpecs.Cluster);
    const account = manifestOf("Cluster", { ...minimalSpecs.Cluster, serviceAccountName: "a" });
    expect(evaluateCelRules("Cluster", account, without)).toEqual([]);
    expect(evaluateCelRules("Cluster", without, account)).toEqual([]);
  });

  it("refuses what makes a rule fail, naming the key and the rule", () => {
    const role = manifestOf("DatabaseRole", { ...minimalSpecs.DatabaseRole, clientCertificate: { enabled: true } });
    expect(evaluateCelRules("DatabaseRole", role)).toEqual([
      {
        path: "spec",
        rule: "cel",
        message: "no such key: login evaluating rule: clientCertificate requires the role to have login enabled",
      },
    ]);
  });

  it("does not take the order of keys for a change", () => {
    const one = manifestOf("Backup", { cluster: { name: "pg" }, online: true, target: "primary" });
    const same = manifestOf("Backup", { target: "primary", online: true, cluster: { name: "pg" } });
    expect(evaluateCelRules("Backup", one, same)).toEqual([]);
  });

  it("compares after defaults, so that writing a default down is no change", () => {
    const short = manifestOf("Backup", { cluster: { name: "pg" } });
    const long = manifestOf("Backup", { cluster: { name: "pg" }, method: "barmanObjectStore" });
    expect(evaluateCelRules("Backup", long, short)).toEqual([]);
  });
});

function rulesOf(kind: CrdKind): string[] {
  const walk = (stored: Schema, path: string): string[] => {
    const schema = resolve(stored);
    return [
      ...(schema["x-kubernetes-validations"] ?? []).map(
        (rule) => `${kind} ${path}${rule.fieldPath ?? ""}: ${rule.message}`,
      ),
      ...Object.entries(schema.properties ?? {}).flatMap(([name, field]) =>
        walk(field, path === "" ? name : `${path}.${name}`),
      ),
      ...(schema.items ? walk(schema.items, `${path}[]`) : []),
      ...(schema.additionalProperties ? walk(schema.additionalProperties, `${path}{}`) : []),
    ];
  };
  return walk(schemaOf(kind), "");
}
