import { applyPatch, type Operation } from "rfc6902";
import type { Cluster } from "../../api/generated/cluster.ts";
import { annotations } from "../../api/labels.ts";
import { parseGoBoolean } from "../../api/markers.ts";
import { type FieldIssue, invalid } from "./field-issue.ts";
import { parseLivenessPinger } from "./liveness-pinger.ts";
import { type ClusterRule, when } from "./rule.ts";
import type { AdmissionContext } from "./settings.ts";

/** The cluster's name and the annotations that configure it. */
export const checkMetadata: ClusterRule = (cluster, context) => [
  ...checkName(cluster.metadata.name ?? ""),
  ...checkHibernation(cluster),
  ...checkFailoverQuorum(cluster),
  ...checkLivenessPinger(cluster),
  ...checkPodPatch(cluster, context),
];

function checkName(name: string): FieldIssue[] {
  return [
    ...when(
      !/^[a-z]([-a-z0-9]*[a-z0-9])?$/.test(name) || name.length > 63,
      invalid("metadata.name", name, "cluster name must be a valid DNS label"),
    ),
    ...when(name.length > 50, invalid("metadata.name", name, "the maximum length of a cluster name is 50 characters")),
  ];
}

function checkHibernation(cluster: Cluster): FieldIssue[] {
  const value = cluster.metadata.annotations?.[annotations.hibernation];
  return when(
    value !== undefined && value !== "on" && value !== "off",
    invalid(annotationPath(annotations.hibernation), value, 'Annotation value for hibernation should be "on" or "off"'),
  );
}

function checkFailoverQuorum(cluster: Cluster): FieldIssue[] {
  const value = cluster.metadata.annotations?.[annotations.failoverQuorum];
  return when(
    value !== undefined && parseGoBoolean(value) === undefined,
    invalid(
      annotationPath(annotations.failoverQuorum),
      value,
      "Invalid failoverQuorum annotation value, expected boolean.",
    ),
  );
}

function checkLivenessPinger(cluster: Cluster): FieldIssue[] {
  const value = cluster.metadata.annotations?.[annotations.livenessPinger];
  const pinger = parseLivenessPinger(value);
  if (!pinger || !("error" in pinger)) return [];
  const message = `error decoding liveness pinger config: ${pinger.error}`;
  return [invalid(annotationPath(annotations.livenessPinger), value, message)];
}

function checkPodPatch(cluster: Cluster, context: AdmissionContext): FieldIssue[] {
  const value = cluster.metadata.annotations?.[annotations.podPatch];
  if (value === undefined) return [];
  const path = annotationPath(annotations.podPatch);
  let operations: unknown;
  try {
    operations = JSON.parse(value);
  } catch (error) {
    return [invalid(path, value, `error decoding JSON patch: ${error instanceof Error ? error.message : error}`)];
  }
  if (!Array.isArray(operations)) return [invalid(path, value, "error decoding JSON patch: not a list of operations")];
  if (!context.buildPod) return [];
  const { [annotations.podPatch]: _, ...rest } = cluster.metadata.annotations ?? {};
  const pod = context.buildPod({ ...cluster, metadata: { ...cluster.metadata, annotations: rest } });
  const failures = applyPatch(structuredClone(pod), operations as Operation[]).filter((failure) => failure !== null);
  return when(
    failures.length > 0,
    invalid(path, value, `jsonpatch doesn't apply cleanly to the pod: ${failures.map(describe).join("; ")}`),
  );
}

function describe(error: Error): string {
  return error.message || error.name;
}

function annotationPath(key: string): string {
  return `metadata.annotations.${key}`;
}
