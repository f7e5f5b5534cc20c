import { describe, expect, it } from "vitest";
import type { Cluster } from "../../../../src/api/generated/cluster.ts";
import { parameterError, readPluginConfiguration } from "../../../../src/plugin/framework/configuration.ts";

function cluster(plugins: Cluster["spec"]["plugins"]): Cluster {
  const spec = { instances: 1, storage: {}, ...(plugins ? { plugins } : {}) };
  return { apiVersion: "postgresql.cnpg.io/v1", kind: "Cluster", metadata: { name: "c" }, spec };
}

describe("the configuration of a plugin in a Cluster", () => {
  it("is the last entry of its name", () => {
    const entries = [{ name: "a", parameters: { x: "1" } }, { name: "b" }, { name: "a", parameters: { x: "2" } }];
    expect(readPluginConfiguration(cluster(entries), "a")).toEqual({
      index: 2,
      enabled: true,
      isWalArchiver: false,
      parameters: { x: "2" },
    });
  });

  it("may be disabled, or not there", () => {
    const disabled = [{ name: "a", enabled: false, isWALArchiver: true }];
    expect(readPluginConfiguration(cluster(disabled), "a")).toMatchObject({ enabled: false, isWalArchiver: true });
    expect(readPluginConfiguration(cluster(undefined), "a")).toEqual({
      index: -1,
      enabled: false,
      isWalArchiver: false,
      parameters: {},
    });
  });

  it("places complaints at the parameter", () => {
    const configuration = readPluginConfiguration(cluster([{ name: "a", parameters: { x: "1" } }]), "a");
    expect(parameterError(configuration, "x", "too small")).toEqual({
      path: ["spec", "plugins", "0", "x"],
      value: "1",
      message: "too small",
    });
    expect(parameterError(readPluginConfiguration(cluster([]), "a"), "x", "m").path).toEqual(["spec", "plugins", "x"]);
  });
});
