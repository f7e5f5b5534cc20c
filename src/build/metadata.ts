import { clusterName, clusterNamespace } from "../api/cluster-facts.ts";
import { cnpgApiVersion } from "../api/constants.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import type { ObjectMeta, OwnerReference } from "../api/generated/kubernetes.ts";
import { annotations, labels } from "../api/labels.ts";
import { imageMajor } from "../postgres/image-version.ts";
import type { BuildContext } from "./context.ts";
import { matchesGlob } from "./glob.ts";
import { present } from "./present.ts";

type Metadata = { labels: Record<string, string>; annotations: Record<string, string> };

/** The controller reference that ties a child to its cluster; pods and jobs also block the owner's deletion. */
export function ownerReference(cluster: Cluster, options: { block?: boolean } = {}): OwnerReference {
  return {
    apiVersion: cnpgApiVersion,
    kind: "Cluster",
    name: clusterName(cluster),
    uid: cluster.metadata.uid ?? "",
    controller: true,
    ...(options.block ? { blockOwnerDeletion: true } : {}),
  };
}

/** Whether an object is controlled by this very cluster (same name and UID). */
export function ownsObject(cluster: Cluster, object: { metadata: ObjectMeta }): boolean {
  const owner = controllerOf(object);
  return isClusterReference(owner) && owner?.name === clusterName(cluster) && owner.uid === cluster.metadata.uid;
}

/** The reference to the object's controller, if it has one. */
export function controllerOf(object: { metadata: ObjectMeta }): OwnerReference | undefined {
  return object.metadata.ownerReferences?.find((reference) => reference.controller);
}

/** Whether a reference names a Cluster of the compatible API. */
export function isClusterReference(reference: OwnerReference | undefined): boolean {
  return reference?.kind === "Cluster" && reference.apiVersion === cnpgApiVersion;
}

/** Labels and annotations that most children take from their cluster, `cnpg.io/cluster` and the operator's version included. */
export function inheritedMetadata(cluster: Cluster, context: BuildContext): Metadata {
  const fixed = cluster.spec.inheritedMetadata;
  return {
    labels: {
      ...fixed?.labels,
      ...selectKeys(cluster.metadata.labels, context.inheritedLabels),
      [labels.cluster]: clusterName(cluster),
    },
    annotations: {
      ...fixed?.annotations,
      ...selectKeys(cluster.metadata.annotations, context.inheritedAnnotations),
      [annotations.operatorVersion]: context.operatorVersion,
    },
  };
}

function selectKeys(map: Record<string, string> | undefined, globs: readonly string[]): Record<string, string> {
  return Object.fromEntries(Object.entries(map ?? {}).filter(([key]) => globs.some((glob) => matchesGlob(glob, key))));
}

/** Major version of the data that the cluster's instances hold, or are about to; `undefined` when the image does not tell. */
export function postgresMajor(cluster: Cluster): number | undefined {
  return (
    cluster.status?.pgDataImageInfo?.majorVersion ??
    cluster.spec.imageCatalogRef?.major ??
    imageMajor(cluster.spec.imageName ?? "")
  );
}

/** The label that marks what the operator manages. */
export const managedByLabel: Record<string, string> = { [labels.appManagedBy]: "cloudnative-pg" };

/** The three common labels of volumes. */
export const volumeLabels: Record<string, string> = {
  [labels.appName]: "postgresql",
  [labels.appComponent]: "database",
  ...managedByLabel,
};

/** The recommended application labels of pods, jobs, Services and disruption budgets. */
export function appLabels(cluster: Cluster): Record<string, string> {
  const major = postgresMajor(cluster);
  return {
    ...volumeLabels,
    [labels.appInstance]: clusterName(cluster),
    ...(major === undefined ? {} : { [labels.appVersion]: String(major) }),
  };
}

/** Metadata of an owned child: inherited data below, what the child's kind adds on top. */
export function childMetadata(
  cluster: Cluster,
  context: BuildContext,
  child: {
    name: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    block?: boolean;
  },
): ObjectMeta {
  const inherited = inheritedMetadata(cluster, context);
  return present<ObjectMeta>({
    name: child.name,
    namespace: clusterNamespace(cluster) || undefined,
    labels: { ...child.labels, ...inherited.labels, ...ownKeys(child.labels) },
    annotations: { ...child.annotations, ...inherited.annotations, ...ownKeys(child.annotations) },
    ownerReferences: [ownerReference(cluster, { block: child.block ?? false })],
  });
}

/** Inherited data may replace the common application labels, never what the operator works with. */
function ownKeys(map: Record<string, string> | undefined): Record<string, string> {
  return Object.fromEntries(Object.entries(map ?? {}).filter(([key]) => key.startsWith("cnpg.io/")));
}
