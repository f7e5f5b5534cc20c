import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeOne } from "../chaos/run-fault.ts";
import { createScene } from "../chaos/scene.ts";
import type { TestCluster } from "./support/cluster.ts";

describe("a cluster of three on three nodes, with synchronous replication", () => {
  let cluster: TestCluster;
  beforeAll(async () => {
    cluster = await createScene("required");
  });
  afterAll(async () => {
    await cluster?.remove();
  });

  test.each([
    ["the primary's node loses its power", "node-lost", true],
    ["the primary's node is cut off", "node-cut-off", true],
    ["the primary's node is drained", "node-drained", true],
    ["only the API server is out of the primary's reach", "api-server-unreachable", false],
  ])("when %s nothing acknowledged is lost and no two primaries acknowledge", async (_, fault, moves) => {
    const before = await cluster.primary();
    const { moved, lost, overlapSeconds, acknowledged, broken } = await makeOne(cluster, fault, "required");
    expect(broken).toBeUndefined();
    expect(acknowledged).toBeGreaterThan(50);
    expect(lost).toBe(0);
    expect(overlapSeconds).toBe(0);
    expect(moved, `primary before: ${before}`).toBe(moves);
  });
});
