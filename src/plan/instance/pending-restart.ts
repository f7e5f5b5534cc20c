import { phases } from "../../api/phases.ts";

/** What a restart that the loaded configuration waits for is decided from. */
export interface PendingRestartView {
  /** Whether any setting waits for a restart. */
  pending: boolean;
  /** Whether one of the hot-standby-sensitive settings gets lower. */
  decrease: boolean;
  /** Whether this instance is the current primary, or the designated one of a replica cluster. */
  actingPrimary: boolean;
  instances: number;
  updateStrategy: "unsupervised" | "supervised";
  phase: string;
}

export type PendingRestartAction =
  | { kind: "none" }
  /** Restart PostgreSQL now, then set the phase. */
  | { kind: "restart"; phase: string; reason: string }
  | { kind: "setPhase"; phase: string; reason: string };

/** Decides what follows a reload (reference: instance manager §4.5). */
export function planPendingRestart(view: PendingRestartView): PendingRestartAction {
  if (!view.pending) return { kind: "none" };
  if (view.decrease && view.actingPrimary) {
    if (view.updateStrategy === "unsupervised") {
      return {
        kind: "restart",
        phase: phases.applyingConfiguration,
        reason: "Decrease of hot standby sensitive parameters",
      };
    }
    return { kind: "setPhase", phase: phases.waitingForUser, reason: "User must issue a supervised switchover" };
  }
  // The replicas go first; the primary has nothing to add while there are any.
  if (view.phase === phases.applyingConfiguration || (view.actingPrimary && view.instances > 1))
    return { kind: "none" };
  return { kind: "setPhase", phase: phases.applyingConfiguration, reason: "PostgreSQL configuration changed" };
}

/**
 * Whether a standby tells that it waits for a restart: one that lowers a sensitive setting must wait until its own control
 * file shows that the primary has restarted with the lower values.
 */
export function reportsPendingRestart(view: {
  pending: boolean;
  decrease: boolean;
  isPrimary: boolean;
  replicaCluster: boolean;
  /** Whether the control file still has a higher value than the configuration asks for; `undefined` when unreadable. */
  controlHigher: boolean | undefined;
}): boolean {
  if (!view.pending) return false;
  if (view.isPrimary || view.replicaCluster || !view.decrease) return true;
  return view.controlHigher === false;
}
