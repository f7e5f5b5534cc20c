import { describe, expect, test } from "vitest";
import type { Cluster } from "../../../../src/api/generated/cluster.ts";
import { judgeDefinition } from "../../../../src/plan/instance/definition.ts";
import { applyDefaults } from "../../../../src/schema/admission/defaults.ts";
import { aCluster } from "../cluster/fixtures.ts";

const me = { goArch: "amd64", hash: "mine" };
const sends = (hash: string, goArch = "amd64"): Cluster["status"] => ({ availableArchitectures: [{ goArch, hash }] });

/** A definition as an operator with these settings leaves it. */
function defaulted(cluster: Cluster, operator: Partial<Parameters<typeof applyDefaults>[1]["settings"]> = {}): Cluster {
  const settings = {
    defaultPostgresImage: "registry.example.org/postgresql:18",
    monitoringQueriesConfigMap: "",
    monitoringQueriesSecret: "",
    includePlugins: [],
    ...operator,
  };
  return applyDefaults(cluster, { mode: "enforce", settings });
}

describe("judgeDefinition", () => {
  const whole = defaulted(aCluster({}, sends("mine")));
  const without = (field: keyof Cluster["spec"]): Cluster => {
    const { [field]: _left, ...spec } = whole.spec;
    return { ...whole, spec: spec as Cluster["spec"] };
  };
  const parameters = (given: Record<string, string>): Cluster => ({
    ...whole,
    spec: {
      ...whole.spec,
      postgresql: { ...whole.spec.postgresql, parameters: { ...whole.spec.postgresql?.parameters, ...given } },
    },
  });

  test("what the operator has defaulted is admitted, whatever its settings are", () => {
    expect(judgeDefinition(whole, me)).toEqual({ kind: "admitted" });
    const settings = {
      monitoringQueriesConfigMap: "a",
      monitoringQueriesSecret: "b",
      includePlugins: ["p.example.org"],
    };
    const { imageName: _image, ...spec } = aCluster().spec;
    const bare = { ...aCluster({}, sends("mine")), spec };
    expect(judgeDefinition(defaulted(bare, settings), me)).toEqual({ kind: "admitted" });
  });

  test.each<[string, Cluster, string]>([
    ["no image, which only the operator chooses", without("imageName"), "defaults are missing in spec.imageName"],
    ["no log level", without("logLevel"), "defaults are missing in spec.logLevel"],
    ["two defaults", { ...without("logLevel"), spec: { ...without("logLevel").spec, probes: {} } }, "spec.probes"],
    [
      "a parameter that nobody may set",
      parameters({ archive_command: "true" }),
      "the definition fails validation on: spec.postgresql.parameters.archive_command",
    ],
    [
      "a size that is none",
      { ...whole, spec: { ...whole.spec, storage: { size: "much" } } },
      "the definition fails validation on: spec.storage.size",
    ],
  ])("%s is held back", (_name, cluster, reason) => {
    const verdict = judgeDefinition(cluster, me);
    expect(verdict).toMatchObject({ kind: "heldBack", reason: expect.stringContaining(reason) });
    // The same past an operator whose rules may be others.
    for (const status of [undefined, {}, sends("another"), sends("mine", "arm64")]) {
      expect(judgeDefinition({ ...cluster, ...(status ? { status } : { status: {} }) }, me)).toEqual({
        kind: "admitted",
      });
    }
  });

  test("where validation is switched off the operator still drops what only it decides", () => {
    const metadata = { ...whole.metadata, annotations: { "cnpg.io/validation": "disabled" } };
    const bad = parameters({ archive_command: "true" });
    expect(judgeDefinition({ ...bad, metadata }, me).kind).toBe("heldBack");
    expect(judgeDefinition(defaulted({ ...bad, metadata }), me).kind).toBe("admitted");
  });

  test("each field that is wrong is named", () => {
    const verdict = judgeDefinition(parameters({ archive_command: "true", port: "1" }), me);
    expect(verdict.kind === "heldBack" && verdict.errors).toHaveLength(2);
  });
});
