import { annotations, labels } from "../../src/api/labels.ts";
import type { KubeObject } from "../../src/ports/kube-api.ts";

/** How an object as we send it differs from one that lies on an API server, what is written there by others apart. */
export function compareLive(sent: KubeObject, live: KubeObject): string[] {
  return diff(withoutUids(sent), withoutUids(live), "", "live");
}

/** How two values differ, as paths with a word on how. */
export function compareExactly(own: unknown, other: unknown, path: string): string[] {
  return diff(own, other, path, "none");
}

/** Fields that the API server, schedulers and controllers fill where nobody said anything, by the last step of their path. */
const filled = new Set([
  ...["creationTimestamp", "uid", "resourceVersion", "generation", "finalizers", "status"],
  ...["terminationMessagePath", "terminationMessagePolicy", "imagePullPolicy", "dnsPolicy", "schedulerName"],
  ...["serviceAccount", "enableServiceLinks", "preemptionPolicy", "priority", "nodeName", "tolerations"],
  ...["restartPolicy", "terminationGracePeriodSeconds", "successThreshold", "failureThreshold"],
  ...["clusterIP", "clusterIPs", "internalTrafficPolicy", "ipFamilies", "ipFamilyPolicy", "sessionAffinity"],
  ...["backoffLimit", "completionMode", "completions", "manualSelector", "parallelism", "podReplacementPolicy"],
  ...["suspend", "selector", "controller-uid", "job-name", "volumeMode", "volumeName", "storageClassName"],
  ...["acquireTime", "renewTime", "leaseTransitions", "leaseDurationSeconds"],
]);
const filledPrefix = /^(batch|pv|volume|volume\.beta)\.kubernetes\.io\//;

/** What changes while a cluster lives; the hash of the environment counts only for pods without a recorded spec. */
const moving = new Set<string>([
  ...[labels.instanceRole, labels.legacyRole, annotations.pvcStatus, annotations.podSpec, annotations.podEnvHash],
  "holderIdentity",
]);

type Leeway = "none" | "live";

function diff(own: unknown, other: unknown, path: string, leeway: Leeway): string[] {
  if (JSON.stringify(own) === JSON.stringify(other)) return [];
  if (!isNested(own) || !isNested(other)) {
    return [`${path}: ${JSON.stringify(own)} instead of ${JSON.stringify(other)}`];
  }
  const [left, right] = [entriesOf(own), entriesOf(other)];
  return [...new Set([...left.keys(), ...right.keys()])].flatMap((key) => {
    const place = `${path}.${key}`;
    if (leeway === "live" && moving.has(key)) return [];
    if (left.has(key) && right.has(key)) return diff(left.get(key), right.get(key), place, leeway);
    if (left.has(key)) return [`${place}: only ours has it`];
    return leeway === "live" && (filled.has(key) || filledPrefix.test(key)) ? [] : [`${place}: ours lacks it`];
  });
}

function isNested(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/** The volume with the account's token is put in by the API server, and its name is random. */
function entriesOf(value: object): Map<string, unknown> {
  if (!Array.isArray(value)) return new Map(Object.entries(value));
  const kept = value.filter((it) => !String((it as { name?: unknown } | null)?.name).startsWith("kube-api-access-"));
  return new Map(kept.map((it, index) => [String(index), it]));
}

/** UIDs tell one run from another and say nothing. */
function withoutUids(object: KubeObject): KubeObject {
  const ownerReferences = object.metadata.ownerReferences?.map((it) => ({ ...it, uid: "" }));
  return { ...object, metadata: { ...object.metadata, ...(ownerReferences ? { ownerReferences } : {}) } };
}
