import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { csiManifests } from "../../../local/cluster/config/csi.ts";
import { clusterFolders } from "../../../local/cluster/folders.ts";
import { firstMounts } from "../../../local/cluster/loop-devices.ts";
import { driverConfig } from "../../../local/csi/config.ts";
import {
  CreateVolumeRequestSchema,
  VolumeCapability_AccessMode_Mode as Mode,
  VolumeCapabilitySchema,
} from "../../../local/csi/gen/csi_pb.ts";
import { findMount, parseMountTable } from "../../../local/csi/mount-table.ts";
import { topologyKey } from "../../../local/csi/names.ts";
import { OneAtATime } from "../../../local/csi/one-at-a-time.ts";
import { checkCapability, formatVolumeId, parseVolumeId, planCapacity, planVolume } from "../../../local/csi/volume.ts";

const mebibyte = 1024n * 1024n;

describe("the identity of a volume", () => {
  it("says its node and its name", () => {
    const volume = { node: "node-1", name: "pvc-0a" };
    expect(parseVolumeId(formatVolumeId(volume))).toEqual(volume);
  });

  it.each(["", "node-1", "../x.pvc", "node-1./etc", "node-1.a.b"])("is not %j", (id) => {
    expect(() => parseVolumeId(id)).toThrow(/there is no volume/);
  });
});

describe("the size of a volume", () => {
  it.each([
    ["what is asked for", { requiredBytes: 512n * mebibyte, limitBytes: 0n }, 512n],
    ["rounded up to a mebibyte", { requiredBytes: 512n * mebibyte + 1n, limitBytes: 0n }, 513n],
    ["what the filesystem needs at least", { requiredBytes: mebibyte, limitBytes: 0n }, 300n],
    ["as small as can be without a wish", undefined, 300n],
    ["at the limit", { requiredBytes: 400n * mebibyte, limitBytes: 400n * mebibyte }, 400n],
  ])("is %s", (_, range, mebibytes) => {
    expect(planCapacity(range)).toBe(mebibytes * mebibyte);
  });

  it("is refused over the limit or below nothing", () => {
    expect(() => planCapacity({ requiredBytes: 0n, limitBytes: mebibyte })).toThrow(/over the limit/);
    expect(() => planCapacity({ requiredBytes: -1n, limitBytes: 0n })).toThrow(/negative/);
  });
});

describe("the use of a volume", () => {
  const mounted = (fsType: string, mode: Mode) =>
    create(VolumeCapabilitySchema, { accessType: { case: "mount", value: { fsType } }, accessMode: { mode } });

  it.each([
    ["xfs on one node", mounted("xfs", Mode.SINGLE_NODE_WRITER), null],
    ["any filesystem in one pod", mounted("", Mode.SINGLE_NODE_SINGLE_WRITER), null],
    ["another filesystem", mounted("ext4", Mode.SINGLE_NODE_WRITER), /ask for xfs/],
    ["many nodes", mounted("xfs", Mode.MULTI_NODE_MULTI_WRITER), /ReadWriteOnce/],
    ["a block device", create(VolumeCapabilitySchema, { accessType: { case: "block", value: {} } }), /Filesystem/],
  ])("%s", (_, capability, reason) => {
    const answer = checkCapability(capability);
    if (reason === null) expect(answer).toBeNull();
    else expect(answer).toMatch(reason);
  });
});

describe("a new volume", () => {
  const request = (nodes: readonly string[], more = {}) =>
    create(CreateVolumeRequestSchema, {
      name: "pvc-1",
      accessibilityRequirements: { preferred: nodes.map((node) => ({ segments: { [topologyKey]: node } })) },
      ...more,
    });

  it("goes to the node that is liked best, else to the first", () => {
    expect(planVolume(request(["node-2", "node-1"]), ["node-1", "node-2"]).node).toBe("node-2");
    expect(planVolume(request([]), ["node-1", "node-2"]).node).toBe("node-1");
  });

  it("goes nowhere else when its nodes are unknown", () => {
    expect(() => planVolume(request(["node-7"]), ["node-1"])).toThrow(/node-7/);
  });

  it("is neither a copy nor a path", () => {
    expect(() => planVolume(request([], { volumeContentSource: {} }), ["node-1"])).toThrow(/copies/);
    expect(() => planVolume(request([], { name: "../x" }), ["node-1"])).toThrow(/name/);
  });
});

describe("the table of mounts", () => {
  const text = [
    "36 35 7:1 / /data\\040one rw,relatime shared:1 - xfs /dev/loop1 rw",
    "37 35 7:2 / /pods/a rw,relatime - xfs /dev/loop2 rw",
    "38 35 7:3 / /pods/a rw,relatime - xfs /dev/loop3 rw",
    "",
  ].join("\n");

  it("tells the uppermost mount of a path", () => {
    expect(findMount(parseMountTable(text), "/pods/a")).toEqual({ path: "/pods/a", source: "/dev/loop3" });
    expect(findMount(parseMountTable(text), "/data one")?.source).toBe("/dev/loop1");
    expect(findMount(parseMountTable(text), "/pods")).toBeUndefined();
  });

  it("tells one place where each device is mounted", () => {
    expect(firstMounts(text, ["/dev/loop2", "/dev/loop9"])).toEqual([{ path: "/pods/a", source: "/dev/loop2" }]);
  });
});

describe("the driver", () => {
  it("has sockets with short paths", () => {
    const { nodes, controllerSocket } = driverConfig(clusterFolders("/var/lib/cnpg-ts/0123abcd"), ["node-1", "node-9"]);
    const sockets = nodes.flatMap(({ socket, registrationSocket }) => [socket, registrationSocket]);
    expect(new Set([...sockets, controllerSocket]).size).toBe(5);
    for (const socket of sockets) expect(socket.length).toBeLessThan(100);
  });

  it("is not the default, and its volumes can grow", () => {
    const storageClass = csiManifests().find((each) => (each as { kind: string }).kind === "StorageClass");
    expect(storageClass).toMatchObject({ allowVolumeExpansion: true, volumeBindingMode: "WaitForFirstConsumer" });
    expect(storageClass).not.toHaveProperty("metadata.annotations");
  });

  it("does one thing at a time for a volume, also after a failure", async () => {
    const turns = new OneAtATime();
    const seen: string[] = [];
    const first = turns.run("a", async () => {
      await new Promise((resolve) => setImmediate(resolve));
      seen.push("first");
      throw new Error("no");
    });
    const second = turns.run("a", async () => void seen.push("second"));
    const other = turns.run("b", async () => void seen.push("other"));
    await expect(first).rejects.toThrow("no");
    await Promise.all([second, other]);
    expect(seen).toEqual(["other", "first", "second"]);
  });
});
