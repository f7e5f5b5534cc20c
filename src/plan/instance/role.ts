import type { TargetPrimary } from "../../api/pg-status.ts";
import type { ControlData } from "../../postgres/control-data.ts";

/** What the role of an instance is decided from. */
export interface RoleView {
  me: string;
  /** `status.currentPrimary`; empty on first boot. */
  current: string;
  target: TargetPrimary;
  /** Whether the whole cluster follows another one. */
  replicaCluster: boolean;
  /** Role by the files in PGDATA: a data folder without `standby.signal` is a primary's. */
  dataRole: "primary" | "standby";
  /** A rewind ended, but the folder was not made a standby's since: it is no primary's, though no file says so. */
  rewound: boolean;
  /** A rewind began and did not end: the folder holds some of both servers and is nobody's, though its control file looks sound. */
  rewindUnfinished: boolean;
  /** Whether PostgreSQL runs, so that its files are in use. */
  running: boolean;
  /** Whom the primary Lease names: this very pod, a former pod of its name, another instance or nobody; `undefined` = not known. */
  leaseHolder: "me" | "former" | "other" | "nobody" | undefined;
  /** Newest timeline that the local control file tells of; `undefined` when it could not be read. */
  timeline: number | undefined;
  /** `status.timelineID`, 0 when nobody has reported one. */
  clusterTimeline: number;
}

export type RoleDecision =
  /** Run as the primary, which needs the lease. `claimCurrent`: `status.currentPrimary` does not say so yet. */
  | { kind: "primary"; claimCurrent: boolean; reason: string }
  /** Leave recovery, which needs the lease. */
  | { kind: "promote"; waitForReceiver: boolean; reason: string }
  | { kind: "standby"; designated: boolean; reason: string }
  /** Turn a primary's data folder that is not in use into a standby's. */
  | { kind: "demote"; rewind: boolean; reason: string }
  /** An old primary that must not start before there is a new one. */
  | { kind: "waitForPrimary"; reason: string }
  /** A running primary that is not wanted any more. */
  | { kind: "stop"; urgent: boolean; reason: string }
  /** Nothing may be done with what is known. */
  | { kind: "wait"; reason: string };

function planStandbyData(view: RoleView, isTarget: boolean): RoleDecision {
  if (!isTarget) return { kind: "standby", designated: false, reason: "another instance is the target primary" };
  if (view.replicaCluster)
    return { kind: "standby", designated: true, reason: "designated primary of a replica cluster" };
  return {
    kind: "promote",
    waitForReceiver: view.current !== view.me,
    reason: "this instance is the target primary and its data folder is a standby's",
  };
}

function planAsTarget(view: RoleView): RoleDecision {
  if (view.current === "") return { kind: "primary", claimCurrent: true, reason: "first boot" };
  if (view.current === view.me) return { kind: "primary", claimCurrent: false, reason: "current and target primary" };
  // Whoever becomes primary holds the Lease by then: while it names this instance, nobody was primary after it. A pod of
  // the same name had the same volume.
  const isOlder = view.timeline !== undefined && view.timeline < view.clusterTimeline;
  const isHolder = view.leaseHolder === "me" || (view.leaseHolder === "former" && view.timeline !== undefined);
  if (isHolder && !isOlder) {
    return { kind: "primary", claimCurrent: true, reason: "promoted, and the primary lease is still this instance's" };
  }
  // The data of a promotion that was not recorded yet lies on a new timeline; that of an old primary never does, and
  // starting it would drop what the primary after it has committed.
  const ahead = view.timeline !== undefined && view.timeline > view.clusterTimeline;
  if (ahead && view.leaseHolder === "nobody")
    return { kind: "primary", claimCurrent: true, reason: "the promotion was not recorded yet" };
  if (view.leaseHolder === undefined) {
    return {
      kind: "wait",
      reason: `the primary lease, which tells whether ${view.current} was primary after this instance, can't be read`,
    };
  }
  if (view.running) return { kind: "stop", urgent: true, reason: `${view.current} was primary after this instance` };
  return {
    kind: "wait",
    reason:
      `data folder is a primary's (timeline ${view.timeline ?? "unknown"}, the cluster's is ${view.clusterTimeline}) and ` +
      `status.currentPrimary is ${view.current}: check which of the two has the newer data before deleting anything; if it is ` +
      `${view.current}, set status.targetPrimary to it and this instance follows`,
  };
}

/**
 * The newest timeline in the control file: after a promotion its last checkpoint is still on the old one for a while, but the
 * end of recovery is recorded on the new one.
 */
export function newestTimeline(control: ControlData): number | undefined {
  const recovered = Number(control.fields.get("Min recovery ending loc's timeline") ?? 0) || 0;
  return control.timeline === undefined ? undefined : Math.max(control.timeline, recovered);
}

function planOldPrimary(view: RoleView): RoleDecision {
  if (view.target.kind === "none") return { kind: "wait", reason: "no target primary is set yet" };
  if (view.running) {
    const urgent = view.target.kind === "pending";
    const wanted = view.target.kind === "instance" ? view.target.name : "a new primary";
    return { kind: "stop", urgent, reason: `the target primary is ${wanted}` };
  }
  if (view.target.kind === "pending") return { kind: "waitForPrimary", reason: "a new primary is being chosen" };
  if (view.current !== view.target.name) {
    return { kind: "waitForPrimary", reason: `${view.target.name} is not the current primary yet` };
  }
  return { kind: "demote", rewind: true, reason: `${view.current} is the primary now` };
}

function planHalfRewound(view: RoleView, isTarget: boolean): RoleDecision {
  if (!isTarget) return planOldPrimary(view);
  return {
    kind: "wait",
    reason:
      "pg_rewind was cut off in this data folder, which no server may use as it is; set status.targetPrimary to an instance " +
      "with whole data, and this one is rewound again or cloned anew",
  };
}

/** Decides what an instance has to be, from its files and from what the Cluster says. */
export function planRole(view: RoleView): RoleDecision {
  const isTarget = view.target.kind === "instance" && view.target.name === view.me;
  if (view.dataRole === "standby") return planStandbyData(view, isTarget);
  if (view.rewound && !view.running) return { kind: "demote", rewind: false, reason: "the folder was rewound before" };
  if (view.rewindUnfinished && !view.running) return planHalfRewound(view, isTarget);
  if (view.replicaCluster) {
    // Who was no primary any more when the cluster changed may have what its successor lacks.
    const isOld = view.current !== "" && view.current !== view.me && !isTarget;
    if (!view.running && isOld) return planOldPrimary(view);
    if (!view.running) return { kind: "demote", rewind: false, reason: "the cluster became a replica cluster" };
    if (isTarget) return { kind: "wait", reason: "the cluster became a replica cluster; waiting to be fenced" };
  }
  return isTarget ? planAsTarget(view) : planOldPrimary(view);
}

export type StartDecision = { kind: "start" } | { kind: "refuse"; reason: string };

/** The last look before PostgreSQL is started: what a role was decided from can be a lease wait or a request old. */
export function planStart(view: {
  me: string;
  target: TargetPrimary;
  dataRole: "primary" | "standby";
  /** Whether the right to write is good at this moment. */
  leaseHeld: boolean;
}): StartDecision {
  if (view.dataRole === "standby") return { kind: "start" };
  if (!view.leaseHeld)
    return { kind: "refuse", reason: "the data folder is a primary's and the primary lease is not held" };
  if (view.target.kind === "instance" && view.target.name === view.me) return { kind: "start" };
  return { kind: "refuse", reason: "the data folder is a primary's and this instance is not the target primary" };
}

/** State that only a rewind leaves in a folder without `standby.signal`: recovery renames the label when it begins. */
export function isRewound(view: { backupLabel: boolean; controlState: string | undefined }): boolean {
  return view.backupLabel && view.controlState === "in archive recovery";
}
