import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { name, plugin } from "../../../../examples/plugin/team-label.ts";
import type { Cluster } from "../../../../src/api/generated/cluster.ts";

const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "c-1", labels: { a: "b" } } };

function cluster(parameters: Record<string, string>): Cluster {
  const spec = { instances: 1, storage: {}, plugins: [{ name, parameters }] };
  return { apiVersion: "postgresql.cnpg.io/v1", kind: "Cluster", metadata: { name: "c" }, spec };
}

describe("the example plugin", () => {
  const { lifecycle, operator } = plugin.services;
  const hook = (object: typeof pod, parameters: Record<string, string>) =>
    lifecycle.hook({ operation: "create", cluster: cluster(parameters), object });

  it("labels pods, once", () => {
    expect(hook(pod, { team: "payments" })).toEqual([
      { op: "add", path: "/metadata/labels/example.com~1team", value: "payments" },
    ]);
    const labelled = { ...pod, metadata: { ...pod.metadata, labels: { a: "b", "example.com/team": "payments" } } };
    expect(hook(labelled, { team: "payments" })).toEqual([]);
  });

  it("asks for its parameter", () => {
    expect(() => hook(pod, {})).toThrow('the parameter "team" is missing');
    expect(operator.validateClusterCreate(cluster({}))).toMatchObject([{ path: ["spec", "plugins", "0", "team"] }]);
    expect(operator.validateClusterCreate(cluster({ team: "x" }))).toEqual([]);
  });

  it("stays below sixty lines", () => {
    const text = readFileSync(new URL("../../../../examples/plugin/team-label.ts", import.meta.url), "utf8");
    expect(text.trimEnd().split("\n").length).toBeLessThan(60);
  });
});
