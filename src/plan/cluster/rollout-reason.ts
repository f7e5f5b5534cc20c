import type { Pod, PodSpec } from "../../api/generated/kubernetes.ts";
import { annotations } from "../../api/labels.ts";
import { parseNodeSerial } from "../../api/markers.ts";
import { buildInstancePod, parseRecordedPodSpec } from "../../build/instance-pod.ts";
import { comparePodSpecs } from "../../build/pod-spec-diff.ts";
import { expectedPvcs } from "../../build/pvcs.ts";
import { sameJson } from "../../build/same-json.ts";
import type { AnsweredInstance } from "./observed.ts";
import { draftCluster, type Pass } from "./pass.ts";
import { targetPodSpec } from "./plugins.ts";
import { claimNames, postgresContainer } from "./pods.ts";

/** Why an instance has to be restarted, and whether restarting PostgreSQL inside of its pod is enough. */
export interface RolloutReason {
  text: string;
  inPlace: boolean;
}

/** First reason to roll an instance that answered (reference: cluster controller §5.8), in a fixed order; `null` = none. */
export function rolloutReason(pass: Pass, instance: AnsweredInstance): RolloutReason | null {
  if (!instance.ready || instance.status.mightBeUnavailable) return null;
  if (!instance.status.executableHash) {
    return { text: `pod '${instance.name}' is not reporting the executable hash`, inPlace: false };
  }
  const text = outdatedSpec(pass, instance.pod);
  if (text) return { text, inPlace: false };
  if (instance.status.pendingRestart) {
    return { text: "Postgres needs a restart to apply some configuration changes", inPlace: true };
  }
  return null;
}

/** In words, how a pod differs from the one that would be made now; `null` when it does not. */
export function outdatedSpec(pass: Pass, pod: Pod): string | null {
  const serial = parseNodeSerial(pod);
  if (serial === undefined) return null;
  const built = buildInstancePod(draftCluster(pass), serial, pass.observed.operator.context).spec;
  const target = targetPodSpec(pass, pod.metadata.name ?? "", built);
  // Without the plugins' word nobody knows how the pod should look.
  if (!target) return null;
  return (
    missingVolume(pass, pod) ??
    changedProjection(pod.spec, target) ??
    changedImage(pass, pod) ??
    askedRestart(pass, pod) ??
    (pass.cluster.metadata.annotations?.[annotations.reconcilePodSpec] === "disabled"
      ? null
      : driftOf(pass, pod, target))
  );
}

function missingVolume(pass: Pass, pod: Pod): string | null {
  const mounted = new Set(claimNames(pod.spec));
  const isMissing = expectedPvcs(pass.cluster, pod.metadata.name ?? "").some((it) => !mounted.has(it.name));
  return isMissing ? "attaching a new PVC to the instance Pod" : null;
}

function changedProjection(live: PodSpec | undefined, target: PodSpec): string | null {
  const before = projectionOf(live);
  const after = projectionOf(target);
  if (sameJson(before, after)) return null;
  return `projected volume configuration changed, old: ${JSON.stringify(before)}, new: ${JSON.stringify(after)}`;
}

function projectionOf(spec: PodSpec | undefined): unknown {
  const projected = spec?.volumes?.find((it) => it.name === "projected")?.projected;
  if (!projected || (projected.sources ?? []).length === 0) return null;
  return { ...projected, defaultMode: projected.defaultMode ?? 420 };
}

function changedImage(pass: Pass, pod: Pod): string | null {
  const running = pod.spec?.containers.find((it) => it.name === postgresContainer)?.image;
  const wanted = pass.status.image;
  if (!running || !wanted || running === wanted) return null;
  return `the instance is using a different image: ${running} -> ${wanted}`;
}

function askedRestart(pass: Pass, pod: Pod): string | null {
  const asked = pass.cluster.metadata.annotations?.[annotations.restartedAt];
  if (!asked || pod.metadata.annotations?.[annotations.restartedAt] === asked) return null;
  return "cluster has been explicitly restarted via annotation";
}

function driftOf(pass: Pass, pod: Pod, target: PodSpec): string | null {
  const bootstrap = pod.spec?.initContainers?.find((it) => it.name === "bootstrap-controller")?.image;
  const wanted = pass.observed.operator.context.operatorImageName;
  if (bootstrap && bootstrap !== wanted && !pass.observed.operator.onlineUpdateEnabled) {
    return `the instance is using an old bootstrap container image: ${bootstrap} -> ${wanted}`;
  }
  const recorded = parseRecordedPodSpec(pod);
  if (recorded) return comparePodSpecs(recorded, target);
  const scheduler = pod.spec?.schedulerName;
  if (target.schedulerName && scheduler !== target.schedulerName) {
    return `scheduler name changed from: '${scheduler ?? ""}', to '${target.schedulerName}'`;
  }
  return null;
}
