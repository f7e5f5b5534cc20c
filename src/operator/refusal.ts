import type { ClusterAction } from "../plan/cluster/actions.ts";
import type { ClusterStatus } from "../plan/cluster/conditions.ts";
import { isKubeError, type KubeError } from "../ports/kube-api.ts";

/** An object of the name that is to be created belongs to somebody else. */
export class NotOwnedError extends Error {
  override readonly name = "NotOwnedError";
}

/**
 * Whether repeating the same write would meet the same answer until a person does something about it. What is refused because
 * its namespace is being deleted is none of that: there is nothing to do about it.
 */
export function isRefusal(error: unknown): error is NotOwnedError | KubeError {
  if (error instanceof NotOwnedError) return true;
  return isKubeError(error, "invalid", "forbidden") && !error.namespaceTerminating;
}

/** Kinds around the instances: that one of them cannot be written is no reason not to write the others. */
const surroundings = new Set([
  "Service",
  "PodDisruptionBudget",
  "ServiceAccount",
  "Role",
  "RoleBinding",
  "ConfigMap",
  "Secret",
  "PodMonitor",
  "FailoverQuorum",
  "Lease",
]);

/** Whether an action writes an object around the instances. */
export function makesSurrounding(action: ClusterAction): boolean {
  return (action.kind === "create" || action.kind === "update") && surroundings.has(action.object.kind);
}

/** Fields of the status that say what is there, not what was decided; instances wait for some of them. */
const facts: readonly (keyof ClusterStatus)[] = [
  "instances",
  "readyInstances",
  "instanceNames",
  "instancesStatus",
  "instancesReportedState",
  "pvcCount",
  "jobCount",
  "danglingPVC",
  "resizingPVC",
  "initializingPVC",
  "healthyPVC",
  "unusablePVC",
  "topology",
  "timelineID",
  "systemID",
  "certificates",
  "secretsResourceVersion",
  "configMapResourceVersion",
  "podSelectorRefs",
  "operatorCertificateFingerprint",
];

/** The part of a status patch that only tells what was seen. */
export function factsOf(patch: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(facts.flatMap((key) => (key in patch ? [[key, patch[key]]] : [])));
}
