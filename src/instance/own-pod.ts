import { resources } from "../kube/resources.ts";
import { isBeingDeleted, isDeletedByForce, type OwnPod } from "../plan/instance/pod-deletion.ts";
import type { Clock } from "../ports/clock.ts";
import { isKubeError, type KubeApi } from "../ports/kube-api.ts";

/** The kubelet kills two seconds after its signal: an answer that comes later than this is of no use. */
const answerLimitMs = 1_000;

export interface OwnPodOptions {
  kube: Pick<KubeApi, "get">;
  namespace: string;
  podName: string;
  podUid: string;
}

/** What the API server says of the pod that this runs in. */
function look({ kube, namespace, podName }: OwnPodOptions): Promise<OwnPod> {
  return kube.get(resources.pods, { namespace, name: podName }, { timeoutMs: answerLimitMs }).then<OwnPod, OwnPod>(
    ({ metadata: { uid, deletionGracePeriodSeconds } }) => ({
      kind: "found",
      uid,
      deletionGraceSeconds: deletionGracePeriodSeconds,
    }),
    (error: unknown) => ({ kind: isKubeError(error, "notFound") ? "gone" : "unknown" }),
  );
}

/** Asks the API server whether the pod that this runs in was deleted without time to stop; no answer means no. */
export async function wasDeletedByForce(options: OwnPodOptions): Promise<boolean> {
  return isDeletedByForce(await look(options), options.podUid);
}

/** How often a pod without a server looks whether it is still wanted. */
const lookMs = 10_000;

/**
 * Calls `end` when the pod is being deleted and PostgreSQL did not come up yet: the kernel drops a signal to the first process of a
 * pod that has only just begun, and the kubelet sends no second one before the grace period is over.
 */
export async function endWhenDeleted(
  options: OwnPodOptions & { clock: Clock; isUp: () => boolean; end: () => void },
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    await options.clock.sleep(lookMs, signal).catch(() => undefined);
    if (signal.aborted || options.isUp()) return;
    if (isBeingDeleted(await look(options), options.podUid)) return options.end();
  }
}
