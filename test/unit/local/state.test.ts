import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { clusterFolders, clusterKey, nodeFolders, stateFolder } from "../../../local/cluster/folders.ts";
import { parseState, readState, writeState } from "../../../local/cluster/state.ts";

describe("the state file", () => {
  const never = { format: 1, nodes: 1 };

  it.each([
    ["not JSON", "{"],
    ["nothing", ""],
    ["another format", '{"format":2,"nodes":1}'],
    ["no nodes", '{"format":1}'],
    ["a port that is none", '{"format":1,"nodes":1,"apiPort":"x"}'],
    ["half a process", '{"format":1,"nodes":1,"machine":{"pid":12}}'],
  ])("counts as a cluster never started when it holds %s", (_, text) => {
    expect(parseState(text)).toEqual(never);
  });

  it("comes back as it was written", () => {
    const folder = mkdtempSync(join(tmpdir(), "cnpg-ts-state-"));
    const file = join(folder, "below", "cluster.json");
    const state = { format: 1, nodes: 3, apiPort: 20_001, machine: { pid: 12, startTime: "345" } } as const;
    try {
      expect(readState(file)).toEqual(never);
      writeState(file, state);
      expect(readState(file)).toEqual(state);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe("the state folder", () => {
  it("differs for each clone and lies outside of it", () => {
    const [one, other] = [stateFolder({}, "/home/a/cnpg-ts"), stateFolder({}, "/home/b/cnpg-ts")];
    expect(one).toMatch(/^\/var\/lib\/cnpg-ts\/[0-9a-f]{8}$/);
    expect(other).not.toBe(one);
  });

  it("can be chosen", () => {
    expect(stateFolder({ CNPG_TS_STATE: "/data/k8s" }, "/clone")).toBe("/data/k8s");
    expect(stateFolder({ CNPG_TS_STATE: "" }, "/clone")).toMatch(/^\/var\/lib/);
  });

  it("gives the cluster a short key of its own", () => {
    expect(clusterKey("/var/lib/cnpg-ts/0123abcd")).toBe("0123abcd");
    expect(clusterKey("/a/cluster")).not.toBe(clusterKey("/b/cluster"));
  });

  it("keeps its sockets short enough for the kernel", () => {
    const { sockets } = clusterFolders(stateFolder({}, "/a/very/long/path/".repeat(20)));
    expect(join(sockets, "etcd").length).toBeLessThan(100);
  });

  it("keeps nodes apart", () => {
    const folders = clusterFolders("/s");
    expect(nodeFolders(folders, "node-1").volumes).not.toBe(nodeFolders(folders, "node-2").volumes);
  });
});
