// When a Database, DatabaseRole, Publication or Subscription is due (reference: declarative objects §1.1, §1.2).
import type { Database } from "../../api/generated/database.ts";
import { validateDatabase } from "../../schema/admission/database.ts";
import { formatFieldIssue } from "../../schema/admission/field-issue.ts";

/** What the decision is about. */
export interface DeclarativeView {
  generation: number;
  observedGeneration: number;
  applied: boolean | undefined;
  deleting: boolean;
  hasFinalizer: boolean;
  reclaim: "retain" | "delete";
  isReplicaCluster: boolean;
  /** Name of another object that already keeps the same thing in PostgreSQL. */
  winner: string | undefined;
  /** Something beside the definition changed since it was applied. */
  outdated?: boolean;
  /** Why the object must not be dealt with, if so. */
  refusal?: string | undefined;
}

export type DeclarativeDecision =
  | { kind: "nothing" }
  | { kind: "waitForPromotion" }
  | { kind: "release"; drop: boolean }
  | { kind: "conflict"; winner: string }
  | { kind: "refuse"; message: string }
  | { kind: "apply" };

/** Why a Database that came past the webhooks is not dealt with; what it was applied for may still be dropped with it. */
export function refuseDatabase(database: Database): string | undefined {
  if (database.metadata.deletionTimestamp) return undefined;
  const issues = validateDatabase(database);
  if (issues.length === 0) return undefined;
  return `the resource failed admission validation on: ${[...new Set(issues.map(formatFieldIssue))].join(", ")}`;
}

/** Decides the one next step of an object. */
export function planDeclarative(view: DeclarativeView): DeclarativeDecision {
  const observed = view.observedGeneration > 0;
  if (view.deleting) {
    if (!view.hasFinalizer) return { kind: "nothing" };
    // One that was never applied may name what another object keeps.
    const mayDrop = !view.isReplicaCluster && view.refusal === undefined && observed;
    return { kind: "release", drop: view.reclaim === "delete" && mayDrop };
  }
  if (view.isReplicaCluster) return { kind: "waitForPromotion" };
  const done = view.generation === view.observedGeneration && view.applied === true;
  if (done && !view.outdated) return { kind: "nothing" };
  if (view.refusal !== undefined) return { kind: "refuse", message: view.refusal };
  if (!observed && view.winner !== undefined) return { kind: "conflict", winner: view.winner };
  return { kind: "apply" };
}
