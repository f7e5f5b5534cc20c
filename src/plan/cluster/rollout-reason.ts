import type { Pod, PodSpec } from "../../api/generated/kubernetes.ts";
import { annotations } from "../../api/labels.ts";
import { parseNodeSerial } from "../../api/markers.ts";
import { buildInstancePod, parseRecordedPodSpec } from "../../build/instance-pod.ts";
import { comparePodSpecs } from "../../build/pod-spec-diff.ts";
import { expectedPvcs } from "../../build/pvcs.ts";
import { sameJson } from "../../build/same-json.ts";
import { isOurs } from "./manager-upgrade.ts";
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
  const text = outdatedSpec(pass, instance.pod, { ours: isOurs(instance) });
  if (text) return { text, inPlace: false };
  if (instance.status.pendingRestart) {
    return { text: "Postgres needs a restart to apply some configuration changes", inPlace: true };
  }
  return null;
}

/**
 * In words, how a pod differs from the one that would be made now; `null` when it does not. `ours`: an instance manager of ours runs
 * in it, so where managers are replaced in place the pod need not follow the operator's image. A pod of CloudNativePG's is judged as
 * that would do it: who takes a cluster over must not restart it.
 */
export function outdatedSpec(pass: Pass, pod: Pod, { ours = true } = {}): string | null {
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
      : driftOf(pass, pod, target, ours))
  );
}

/**
 * Whether a pod runs without the part of a plugin that archives its WAL: a primary like that could hand nothing over in good
 * order, since it cannot archive the last of its WAL.
 */
export function lacksArchiver(pass: Pass, pod: Pod): boolean {
  const { plugins } = pass.observed;
  const archives = (pass.cluster.spec.plugins ?? []).some((it) => it.isWALArchiver && it.enabled !== false);
  if (!archives || plugins?.kind !== "loaded") return false;
  const wanted = plugins.evaluated.get(pod.metadata.name ?? "");
  const running = new Set(longLivedContainers(pod.spec));
  return longLivedContainers(wanted).some((name) => !running.has(name));
}

/** Names of the containers, and of the init containers that stay. */
function longLivedContainers(spec: PodSpec | undefined): string[] {
  const sidecars = (spec?.initContainers ?? []).filter((it) => it.restartPolicy === "Always");
  return [...(spec?.containers ?? []), ...sidecars].map((it) => it.name);
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

function driftOf(pass: Pass, pod: Pod, target: PodSpec, ours: boolean): string | null {
  const keepsImage = ours && pass.observed.operator.onlineUpdateEnabled;
  const bootstrap = pod.spec?.initContainers?.find((it) => it.name === "bootstrap-controller")?.image;
  const wanted = pass.observed.operator.context.operatorImageName;
  if (bootstrap && bootstrap !== wanted && !keepsImage) {
    return `the instance is using an old bootstrap container image: ${bootstrap} -> ${wanted}`;
  }
  const recorded = parseRecordedPodSpec(pod);
  return recorded ? comparePodSpecs(recorded, target, { compatible: !ours }) : driftOfUnrecorded(pod, target);
}

/** A pod of old times does not tell how it was asked for, so what it is gets compared, as far as nobody else changes that. */
function driftOfUnrecorded(pod: Pod, target: PodSpec): string | null {
  const [before, after] = [plainEnvironment(pod.spec), plainEnvironment(target)];
  if (!sameJson(before, after)) {
    return `environment variable configuration changed, old: ${JSON.stringify(before)}, new: ${JSON.stringify(after)}`;
  }
  const scheduler = pod.spec?.schedulerName;
  if (target.schedulerName && scheduler !== target.schedulerName) {
    return `scheduler name changed from: '${scheduler ?? ""}', to '${target.schedulerName}'`;
  }
  if (!sameJson(pod.spec?.topologySpreadConstraints ?? [], target.topologySpreadConstraints ?? [])) {
    const name = pod.metadata.name ?? "";
    return `pod '${name}' does not have up-to-date TopologySpreadConstraints. It needs to match the cluster's constraints.`;
  }
  return null;
}

/** Variables of PostgreSQL's container with the values that are written there. */
function plainEnvironment(spec: PodSpec | undefined): Record<string, string> {
  const { env = [] } = spec?.containers.find((it) => it.name === postgresContainer) ?? {};
  return Object.fromEntries(env.flatMap((it) => (it.valueFrom ? [] : [[it.name, it.value ?? ""] as const])));
}
