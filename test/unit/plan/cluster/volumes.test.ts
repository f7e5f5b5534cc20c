import { describe, expect, it } from "vitest";
import type { PersistentVolumeClaim } from "../../../../src/api/generated/kubernetes.ts";
import { annotations } from "../../../../src/api/labels.ts";
import { hasPrepared } from "../../../../src/plan/cluster/jobs.ts";
import { freeSerials } from "../../../../src/plan/cluster/serials.ts";
import { classifyVolumes, type VolumeClass } from "../../../../src/plan/cluster/volumes.ts";
import { aCluster, aJob, aPod, volumesOf } from "./fixtures.ts";

const cluster = aCluster({ walStorage: { size: "1Gi" } });

function changed(volume: PersistentVolumeClaim, change: (it: PersistentVolumeClaim) => void): PersistentVolumeClaim {
  const copy = structuredClone(volume);
  change(copy);
  return copy;
}

const [data, wal] = volumesOf(cluster, 1) as [PersistentVolumeClaim, PersistentVolumeClaim];
const withCondition = (type: string, status = "True") =>
  changed(data, (it) => {
    it.status = { phase: "Bound", conditions: [{ type, status }] };
  });
const resizing = withCondition("Resizing");
const waiting = withCondition("FileSystemResizePending");

describe("the class of a data volume", () => {
  it.each<[string, VolumeClass, Parameters<typeof classify>]>([
    ["used by a pod", "healthy", [[data, wal], { pod: true }]],
    ["used by a pod and growing", "resizing", [[resizing, wal], { pod: true }]],
    ["growing without a pod", "dangling", [[resizing, wal], {}]],
    ["growing without a pod, with a finished Job", "dangling", [[resizing, wal], { job: "complete" }]],
    // Its file system grows only once a pod mounts it.
    ["that waits for a pod to grow", "dangling", [[waiting, wal], {}]],
    ["that waits for its pod to grow", "healthy", [[waiting, wal], { pod: true }]],
    ["that has grown", "healthy", [[withCondition("Resizing", "False"), wal], { pod: true }]],
    ["growing without its WAL volume", "unusable", [[resizing], {}]],
    ["used by a running Job", "initializing", [[data, wal], { job: "running" }]],
    ["used by a finished Job", "dangling", [[data, wal], { job: "complete" }]],
    ["used by nothing", "dangling", [[data, wal], {}]],
    ["without the WAL volume it should have", "unusable", [[data], { pod: true }]],
    ["detached by the user", "ignored", [[detached(data), wal], { pod: true }]],
  ])("%s is %s", (_, expected, [volumes, users]) => {
    expect(classify(volumes, users)[expected]).toContain("c-1");
  });

  it("is unusable when nobody expects its name", () => {
    const stray = changed(data, (it) => {
      it.metadata.name = "c-1-tbs-old";
    });
    expect(classify([data, wal, stray], { pod: true }).unusable).toEqual(["c-1-tbs-old"]);
  });
});

function detached(volume: PersistentVolumeClaim): PersistentVolumeClaim {
  return changed(volume, (it) => {
    it.metadata.annotations = { ...it.metadata.annotations, [annotations.pvcStatus]: "detached" };
  });
}

function classify(volumes: PersistentVolumeClaim[], users: { pod?: boolean; job?: "running" | "complete" }) {
  const context = {
    cluster,
    pods: users.pod ? [aPod(cluster, 1)] : [],
    jobs: users.job ? [aJob(cluster, 1, "join", users.job)] : [],
  };
  return classifyVolumes(context, volumes).byClass;
}

describe("groups of volumes", () => {
  const groups = (volumes: PersistentVolumeClaim[]) =>
    classifyVolumes({ cluster, pods: [], jobs: [] }, volumes).groups.map((it) => [it.instance, it.missing]);

  it("are one per serial, with what they lack", () => {
    const second = volumesOf(cluster, 2);
    expect(groups([data, wal, ...second.slice(1)])).toEqual([
      ["c-1", []],
      ["c-2", ["c-2"]],
    ]);
  });

  it.each<[string, (it: PersistentVolumeClaim) => void]>([
    ["are being removed", (it) => Object.assign(it.metadata, { deletionTimestamp: "2026-01-01T00:00:00Z" })],
    ["are lost", (it) => Object.assign(it, { status: { phase: "Lost" } })],
    ["have no serial", (it) => Object.assign(it.metadata, { annotations: {} })],
    [
      "have a serial that is no positive number",
      (it) => Object.assign(it.metadata, { annotations: { [annotations.nodeSerial]: "0" } }),
    ],
  ])("leave out volumes that %s", (_, change) => {
    expect(groups([changed(data, change)])).toEqual([]);
  });

  it("count a detached volume, so that its name is not given away", () => {
    expect(groups([detached(data), wal])).toEqual([["c-1", []]]);
  });
});

describe("the work of a Job", () => {
  const job = aJob(cluster, 1, "join", "complete");
  it.each([
    ["made before the Job ended", "2026-01-01T23:59:59Z", true],
    ["made in the same second", "2026-01-02T00:00:00Z", true],
    ["made after the Job ended", "2026-01-02T00:00:01Z", false],
  ])("counts for a volume %s: %s", (_, creationTimestamp, expected) => {
    const volume = changed(data, (it) => Object.assign(it.metadata, { creationTimestamp }));
    expect(hasPrepared(job, volume)).toBe(expected);
  });

  it("counts neither unfinished nor for another volume", () => {
    expect(hasPrepared(aJob(cluster, 1, "join", "running"), data)).toBe(false);
    expect(hasPrepared(aJob(cluster, 2, "join", "complete"), data)).toBe(false);
  });
});

describe("free serials", () => {
  it.each<[readonly string[], number, number[]]>([
    [[], 2, [1, 2]],
    [["c-1", "c-3"], 1, [2]],
    [["c-1", "c-3"], 3, [2, 4, 5]],
    [["c-2"], 1, [1]],
    [["other-1", "c-x"], 1, [1]],
  ])("beside %j, %i of them: %j", (names, count, expected) => {
    expect(freeSerials("c", names, count)).toEqual(expected);
  });
});
