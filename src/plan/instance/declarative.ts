// When a Database, Publication or Subscription is due (reference: declarative objects §1.1, §1.2).

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
}

export type DeclarativeDecision =
  | { kind: "nothing" }
  | { kind: "waitForPromotion" }
  | { kind: "release"; drop: boolean }
  | { kind: "conflict"; winner: string }
  | { kind: "apply" };

/** Decides the one next step of an object. */
export function planDeclarative(view: DeclarativeView): DeclarativeDecision {
  const observed = view.observedGeneration > 0;
  if (view.deleting) {
    if (!view.hasFinalizer) return { kind: "nothing" };
    // One that was never applied may name what another object keeps.
    return { kind: "release", drop: view.reclaim === "delete" && !view.isReplicaCluster && observed };
  }
  if (view.isReplicaCluster) return { kind: "waitForPromotion" };
  if (view.generation === view.observedGeneration && view.applied === true) return { kind: "nothing" };
  if (!observed && view.winner !== undefined) return { kind: "conflict", winner: view.winner };
  return { kind: "apply" };
}
