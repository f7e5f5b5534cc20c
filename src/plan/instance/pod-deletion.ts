/** What the API server says of the pod that this instance runs in. */
export type OwnPod =
  | { kind: "found"; uid: string | undefined; deletionGraceSeconds: number | undefined }
  /** There is no such object any more. */
  | { kind: "gone" }
  /** Not asked, not allowed to ask, or no answer. */
  | { kind: "unknown" };

/** Grace periods below this leave no room for a patient stop. */
const shortGraceSeconds = 5;

/**
 * Whether the pod was deleted without a grace period worth the name. The kubelet then ends its containers two seconds
 * after the signal, and a primary that is killed before it gave its Lease back keeps everybody waiting for the Lease's end.
 */
export function isDeletedByForce(pod: OwnPod, myUid: string): boolean {
  if (pod.kind === "unknown") return false;
  if (pod.kind === "gone" || pod.uid !== myUid) return true;
  return pod.deletionGraceSeconds !== undefined && pod.deletionGraceSeconds < shortGraceSeconds;
}

/**
 * Whether the pod is on its way out, which nothing takes back. Only the object itself proves that: without one, or without an answer,
 * a pod that waits for its API server would end in vain.
 */
export function isBeingDeleted(pod: OwnPod, myUid: string): boolean {
  return pod.kind === "found" && pod.uid === myUid && pod.deletionGraceSeconds !== undefined;
}
