import { describe, expect, it } from "vitest";
import { decodeDocument, encodeBackup, encodeCluster, encodeDocument } from "../../../src/rpc/wire/document.ts";

const parse = (bytes: Uint8Array) => JSON.parse(Buffer.from(bytes).toString());

describe("documents for plugins", () => {
  it("a Cluster loses what no plugin reads, and nothing else", () => {
    const cluster = {
      metadata: {
        name: "c",
        uid: "u",
        managedFields: [{}],
        annotations: { "kubectl.kubernetes.io/last-applied-configuration": "{}", keep: "me" },
      },
      spec: { instances: 3 },
      status: { unknownField: true },
    };
    expect(parse(encodeCluster(cluster))).toEqual({
      apiVersion: "postgresql.cnpg.io/v1",
      kind: "Cluster",
      metadata: { name: "c", uid: "u", annotations: { keep: "me" } },
      spec: { instances: 3 },
      status: { unknownField: true },
    });
    expect(cluster.metadata.managedFields).toHaveLength(1);
  });

  it("a group of its own stays", () => {
    const cluster = { apiVersion: "example.com/v2", kind: "Cluster", metadata: { name: "c" } };
    expect(parse(encodeCluster(cluster))).toEqual(cluster);
    expect(parse(encodeBackup({ metadata: { name: "b" } }))).toMatchObject({ kind: "Backup" });
  });

  it("any other object must say what it is, and stays as it is", () => {
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "p", managedFields: [{}] } };
    expect(parse(encodeDocument(pod))).toEqual(pod);
    expect(() => encodeDocument({ metadata: { name: "p" } })).toThrow("no apiVersion or kind");
  });

  it("a text is passed on unread", () => {
    const text = Buffer.from("{ }");
    expect(encodeCluster(text)).toBe(text);
  });

  it.each([
    ["", "is not JSON"],
    ["[]", "is not a JSON object"],
    ["null", "is not a JSON object"],
    ['{"a":', "is not JSON"],
  ])("%j is refused", (text, problem) => {
    expect(() => decodeDocument(Buffer.from(text), "cluster_definition")).toThrow(`cluster_definition ${problem}`);
  });
});
