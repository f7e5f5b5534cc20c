import { resources } from "../kube/resources.ts";
import { isDeletedByForce, type OwnPod } from "../plan/instance/pod-deletion.ts";
import { isKubeError, type KubeApi } from "../ports/kube-api.ts";

/** The kubelet kills two seconds after its signal: an answer that comes later than this is of no use. */
const answerLimitMs = 1_000;

export interface OwnPodOptions {
  kube: Pick<KubeApi, "get">;
  namespace: string;
  podName: string;
  podUid: string;
}

/** Asks the API server whether the pod that this runs in was deleted without time to stop; no answer means no. */
export async function wasDeletedByForce({ kube, namespace, podName, podUid }: OwnPodOptions): Promise<boolean> {
  const pod = await kube
    .get(resources.pods, { namespace, name: podName }, { timeoutMs: answerLimitMs })
    .then<OwnPod, OwnPod>(
      ({ metadata: { uid, deletionGracePeriodSeconds } }) => ({
        kind: "found",
        uid,
        deletionGraceSeconds: deletionGracePeriodSeconds,
      }),
      (error: unknown) => ({ kind: isKubeError(error, "notFound") ? "gone" : "unknown" }),
    );
  return isDeletedByForce(pod, podUid);
}
