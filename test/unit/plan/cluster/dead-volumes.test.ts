import { describe, expect, it } from "vitest";
import { paths } from "../../../../src/api/constants.ts";
import type { Cluster } from "../../../../src/api/generated/cluster.ts";
import { annotations } from "../../../../src/api/labels.ts";
import { describeVolumeFailure } from "../../../../src/api/volume-failure.ts";
import { deadVolumeMs, planDeadVolumes } from "../../../../src/plan/cluster/dead-volumes.ts";
import type { PolledInstance } from "../../../../src/plan/cluster/observed.ts";
import { beginPass } from "../../../../src/plan/cluster/pass.ts";
import { planCluster } from "../../../../src/plan/cluster/plan-cluster.ts";
import { aCluster, answered, aPod, aSettledObservation, now, primaryStatus, silent } from "./fixtures.ts";

const status = { currentPrimary: "c-2", targetPrimary: "c-2", instances: 3, readyInstances: 2 };
const cluster = aCluster({ walStorage: { size: "1Gi" } }, status);
const podOf = (serial: number, state?: Parameters<typeof aPod>[2]) => aPod(cluster, serial, state);
const dead = (
  serial: number,
  silentMs: number = deadVolumeMs,
  folders: readonly string[] = [paths.dataVolume],
): PolledInstance => ({
  ...(silent(podOf(serial, "unready")) as PolledInstance & { kind: "silent" }),
  volumeFailure: describeVolumeFailure(folders, silentMs),
});
const wellPrimary = answered(podOf(2), primaryStatus());
const wellStandby = answered(podOf(3));

function plan(instances: readonly PolledInstance[], of: Cluster = cluster) {
  const observed = aSettledObservation(of, { pods: instances.map((it) => it.pod), instances });
  const pass = beginPass(of, observed, now);
  planDeadVolumes(pass, instances);
  return pass.actions;
}

describe("a pod whose volume takes no writes", () => {
  it("is removed once another instance is the primary, and the event names the volume", () => {
    const [deletion, event, ...rest] = plan([dead(1, 75_000), wellPrimary, wellStandby]);
    expect(rest).toEqual([]);
    expect(deletion).toMatchObject({ kind: "delete", target: { name: "c-1", uid: "uid-pod-1" }, bestEffort: false });
    expect(event).toMatchObject({ kind: "event", type: "Warning", event: "DeadVolume" });
    expect(event?.reason).toBe(
      "Deleted pod c-1: volume c-1 (/var/lib/postgresql/data) has taken no write for 75 s; c-2 is the primary. " +
        "The pod starts again once the volume can be mounted",
    );
  });

  it("is told of by every claim that fails, and by its folder where no claim is known", () => {
    const [, event] = plan([dead(1, deadVolumeMs, [paths.dataVolume, paths.walVolume, "/gone"]), wellPrimary]);
    expect(event?.reason).toContain("c-1 (/var/lib/postgresql/data) and c-1-wal (/var/lib/postgresql/wal) and /gone");
  });

  const kept: [string, readonly PolledInstance[], Cluster?][] = [
    ["the disk may come back soon", [dead(1, deadVolumeMs - 1), wellPrimary]],
    ["it only does not answer", [silent(podOf(1, "unready")), wellPrimary]],
    ["it is the primary", [answered(podOf(1)), dead(2)]],
    ["the primary does not answer", [dead(1), silent(podOf(2)), wellStandby]],
    ["the primary is not ready", [dead(1), answered(podOf(2, "unready"), primaryStatus()), wellStandby]],
    [
      "a failover is under way",
      [dead(1), wellPrimary],
      { ...cluster, status: { ...status, targetPrimary: "pending" } },
    ],
    [
      "its role is being taken over",
      [dead(1), wellPrimary],
      { ...cluster, status: { ...status, currentPrimary: "c-1" } },
    ],
    [
      "a person has fenced it",
      [dead(1), wellPrimary],
      { ...cluster, metadata: { ...cluster.metadata, annotations: { [annotations.fencedInstances]: '["c-1"]' } } },
    ],
  ];
  it.each(kept)("is kept when %s", (_, instances, of) => {
    expect(plan(instances, of)).toEqual([]);
  });

  it("is removed by a whole pass, which leaves the others alone", () => {
    const instances = [dead(1), wellPrimary, wellStandby];
    const observed = aSettledObservation(cluster, { pods: instances.map((it) => it.pod), instances });
    const { actions } = planCluster(cluster, observed, now);
    const deleted = actions.flatMap((it) => (it.kind === "delete" ? [it.target.name] : []));
    expect(deleted).toEqual(["c-1"]);
  });
});
