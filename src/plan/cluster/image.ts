import type { Cluster } from "../../api/generated/cluster.ts";
import { phases } from "../../api/phases.ts";
import { sameJson } from "../../build/same-json.ts";
import { imageMajor } from "../../postgres/image-version.ts";
import type { ClusterStatus } from "./conditions.ts";
import type { ObservedCluster } from "./observed.ts";
import { flushStatus, type Pass, recordEvent, setPhase, type Wait } from "./pass.ts";

type ImageInfo = NonNullable<ClusterStatus["pgDataImageInfo"]>;
type Extension = NonNullable<ImageInfo["extensions"]>[number];

/** What the spec asks for, once names in catalogs are looked up. */
export type ResolvedImage = { kind: "resolved"; info: ImageInfo } | { kind: "failed"; reason: string; event?: string };

/** Stage that turns the spec's image or catalog reference into `status.image` (reference: cluster controller §5.2). */
export function planImage(pass: Pass): Wait | null {
  const resolved = resolveImage(pass.cluster, pass.observed);
  if (resolved.kind === "failed") {
    if (resolved.event && pass.status.phaseReason !== resolved.reason) {
      recordEvent(pass, "Warning", "DiscoverImage", resolved.event);
    }
    setPhase(pass, phases.imageCatalogError, resolved.reason);
    flushStatus(pass, resolved.reason);
    return { because: resolved.reason };
  }
  const { info } = resolved;
  const current = pass.status.pgDataImageInfo;
  if (!current) {
    pass.status = { ...pass.status, image: info.image, pgDataImageInfo: info };
  } else if (info.majorVersion < current.majorVersion) {
    const reason = `cannot downgrade the PostgreSQL major version from ${current.majorVersion} to ${info.majorVersion}`;
    setPhase(pass, phases.imageCatalogError, reason);
    flushStatus(pass, reason);
    return { because: reason };
  } else if (info.majorVersion > current.majorVersion) {
    // The data is of the old version: its image stays until the data has been converted.
    pass.status = { ...pass.status, image: current.image };
  } else if (info.image !== current.image || !sameExtensions(info.extensions, current.extensions)) {
    pass.status = { ...pass.status, image: info.image, pgDataImageInfo: info };
  }
  return null;
}

/**
 * Last stage: a cluster that asks for a higher major version keeps running the one it has, is healed like any other, and
 * says that the conversion of its data is not available.
 */
export function reportMajorUpgrade(pass: Pass): Wait | null {
  const resolved = resolveImage(pass.cluster, pass.observed);
  const current = pass.status.pgDataImageInfo;
  if (resolved.kind === "failed" || !current || resolved.info.majorVersion <= current.majorVersion) return null;
  const because =
    `upgrading from major version ${current.majorVersion} to ${resolved.info.majorVersion} is not supported by this version ` +
    `yet: the cluster goes on with ${current.image}, set that image again`;
  if (pass.cluster.status?.phaseReason !== because) recordEvent(pass, "Warning", "UnsupportedUpgrade", because);
  setPhase(pass, phases.imageCatalogError, because);
  return { because, requeueAfterMs: 60_000 };
}

/** Looks the image up; says in words what is missing. */
export function resolveImage(cluster: Cluster, observed: ObservedCluster): ResolvedImage {
  const { imageName, imageCatalogRef, postgresql } = cluster.spec;
  if (!imageCatalogRef) {
    const image = imageName || observed.operator.context.defaultPostgresImage;
    const majorVersion = imageMajor(image);
    if (majorVersion === undefined) {
      return { kind: "failed", reason: `cannot tell the PostgreSQL major version from the tag of image ${image}` };
    }
    return completed({ image, majorVersion }, undefined, postgresql?.extensions);
  }
  const { name, kind, major, apiGroup } = imageCatalogRef;
  if (apiGroup !== "postgresql.cnpg.io") return { kind: "failed", reason: "invalid image catalog group" };
  if (kind !== "ImageCatalog" && kind !== "ClusterImageCatalog") {
    return { kind: "failed", reason: `invalid image catalog type: ${kind}` };
  }
  const catalog = kind === "ImageCatalog" ? observed.imageCatalogs.get(name) : observed.clusterImageCatalogs.get(name);
  if (!catalog) {
    const reason = `catalog ${kind}/${name} not found`;
    return { kind: "failed", reason, event: `Error getting ${kind}/${name}: not found` };
  }
  const entry = catalog.spec.images.find((it) => it.major === major);
  if (!entry) {
    const reason = "selected major version is not available in the catalog";
    return { kind: "failed", reason, event: `Cannot find major ${major} in ${kind}/${name}` };
  }
  return completed({ image: entry.image, majorVersion: major }, extensionsOf(entry), postgresql?.extensions);
}

function extensionsOf(entry: { extensions?: Extension[] }): Extension[] | undefined {
  return entry.extensions;
}

function completed(
  base: ImageInfo,
  offered: readonly Extension[] | undefined,
  wanted: readonly Extension[] | undefined,
): ResolvedImage {
  if (!wanted || wanted.length === 0) return { kind: "resolved", info: base };
  const extensions: Extension[] = [];
  for (const extension of wanted) {
    const catalogued = offered?.find((it) => it.name === extension.name);
    const image = { ...catalogued?.image, ...extension.image };
    if (!image.reference) {
      const reason = `cannot retrieve extensions for image ${base.image}: extension "${extension.name}" has no image, set image.reference or use a catalog that offers it`;
      return { kind: "failed", reason };
    }
    extensions.push({ ...catalogued, ...extension, image });
  }
  return { kind: "resolved", info: { ...base, extensions } };
}

function sameExtensions(a: readonly Extension[] | undefined, b: readonly Extension[] | undefined): boolean {
  const sorted = (list: readonly Extension[] | undefined) =>
    [...(list ?? [])].sort((left, right) => (left.name < right.name ? -1 : 1));
  return sameJson(sorted(a), sorted(b));
}
