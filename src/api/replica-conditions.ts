/** Conditions of the change from a primary cluster to a replica cluster (reference: cluster controller §1.7, §6.8). */
export const replicaConditions = {
  /** False: instances are to turn the primary into a standby; True: that is done. Absent: no change is under way. */
  transition: "ReplicaClusterDesignatedPrimaryTransition",
  /** True while the operator keeps every instance fenced. */
  fencing: "ReplicaClusterFencing",
  /** How the last change went; stays. */
  switch: "ReplicaClusterSwitch",
} as const;

/** Reasons and messages of {@link replicaConditions}. */
export const replicaConditionTexts = {
  begun: { reason: "ReplicaClusterAfterCreation", message: "Enabled external cluster after a node was generated" },
  transitionDone: {
    reason: "TransitionCompleted",
    message: "Instance Manager has completed the DesignatedPrimary transition",
  },
  switchBegun: { reason: "ReplicaEnabledSetTrue", message: "Starting the Replica cluster transition" },
  switchDone: { reason: "ReplicaEnabledSetTrue", message: "Completed the Replica cluster transition" },
} as const;

type Conditioned = { status?: { conditions?: readonly { type: string; status: string }[] } };

/** How far the change to a replica cluster is: `asked` while the primary still has to become a standby. */
export function replicaTransition(cluster: Conditioned): "none" | "asked" | "completed" {
  const condition = cluster.status?.conditions?.find((it) => it.type === replicaConditions.transition);
  if (!condition) return "none";
  return condition.status === "True" ? "completed" : "asked";
}
