import { expect, test } from "vitest";
import { mustHandOver } from "../../../../src/plan/instance/lease.ts";
import { planVolumeProbe } from "../../../../src/plan/instance/volume-probe.ts";

const record = {
  holder: "c-9",
  renewTime: "t",
  transitions: 3,
  durationSeconds: 15,
  voters: { voters: ["c-1", "c-3"], holderUID: "u" },
};
const fresh = { holder: "", renewTime: "", transitions: 0, durationSeconds: 0, voters: undefined };
const view = { me: "c-1", record, currentPrimary: "c-1", targetPrimary: "c-2" };

test.each([
  ["the successor is not listed", {}, true],
  ["the lease was made anew", { record: fresh }, true],
  ["the lease was made anew and the successor is not chosen yet", { record: fresh, targetPrimary: "" }, true],
  ["the successor is listed", { targetPrimary: "c-3" }, false],
  ["no successor is chosen yet", { targetPrimary: "" }, false],
  ["this instance is to stay", { targetPrimary: "c-1" }, false],
  ["another one is the current primary", { currentPrimary: "c-3" }, false],
  ["this instance is no voter", { me: "c-4", currentPrimary: "c-4" }, false],
])("the lease is handed over when %s: %j %s", (_, change, expected) => {
  expect(mustHandOver({ ...view, ...change })).toBe(expected);
});

const places = { pgData: "/var/lib/postgresql/data/pgdata", walVolume: "/wal", tablespaces: "/ts" };

const mounts = "31 30 8:1 /a /wal rw - ext4 /dev/a rw\n32 30 8:1 /b /ts/fast rw - ext4 /dev/b rw\n";

test("every volume of an instance is probed, for as long as the Cluster says", () => {
  expect(planVolumeProbe(undefined, places, mounts)).toEqual({
    folders: ["/var/lib/postgresql/data"],
    limitMs: 10_000,
  });
  const spec = { walStorage: { size: "1Gi" }, tablespaces: [{ name: "fast" }] };
  const cluster = (seconds: string) =>
    ({ metadata: { annotations: { "cnpg-ts.dev/diskProbeSeconds": seconds } }, spec }) as never;
  expect(planVolumeProbe(cluster("30"), places, mounts)).toEqual({
    folders: ["/var/lib/postgresql/data", "/wal", "/ts/fast"],
    limitMs: 30_000,
  });
  // A pod that is older than the wish for a volume does not have it.
  for (const text of ["31 30 8:1 /a /wal rw - ext4 /dev/a rw", undefined]) {
    const { folders } = planVolumeProbe(cluster("30"), places, text);
    expect(folders).toEqual(text ? ["/var/lib/postgresql/data", "/wal"] : ["/var/lib/postgresql/data"]);
  }
  expect(planVolumeProbe(cluster("0"), places, mounts).limitMs).toBe(0);
  for (const text of ["", "soon", "-1"]) expect(planVolumeProbe(cluster(text), places, mounts).limitMs).toBe(10_000);
});
