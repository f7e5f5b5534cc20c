import { paths } from "../api/constants.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import type { EmptyDirVolumeSource, Volume, VolumeMount } from "../api/generated/kubernetes.ts";
import { extensionVolumeName, tablespacePvcName, tablespaceVolumeName, walPvcName } from "../api/names.ts";
import { present } from "./present.ts";

/** An extension that comes as an image of its own. */
export type ExtensionImage = NonNullable<
  NonNullable<NonNullable<Cluster["status"]>["pgDataImageInfo"]>["extensions"]
>[number];

/** Volumes of an instance's pod, and of the jobs that prepare it. */
export function buildVolumes(cluster: Cluster, instance: string): Volume[] {
  const { spec } = cluster;
  const volumes: Volume[] = [
    { name: "pgdata", persistentVolumeClaim: { claimName: instance } },
    scratchVolume(cluster),
    {
      name: "shm",
      emptyDir: present<EmptyDirVolumeSource>({ medium: "Memory", sizeLimit: spec.ephemeralVolumesSizeLimit?.shm }),
    },
  ];
  if (spec.walStorage) volumes.push({ name: "pg-wal", persistentVolumeClaim: { claimName: walPvcName(instance) } });
  for (const { name } of sortedTablespaces(cluster))
    volumes.push({
      name: `tbs-${tablespaceVolumeName(name)}`,
      persistentVolumeClaim: { claimName: tablespacePvcName(instance, name) },
    });
  if (spec.projectedVolumeTemplate) volumes.push({ name: "projected", projected: spec.projectedVolumeTemplate });
  volumes.push(...extensionVolumes("ext", currentExtensions(cluster)));
  return volumes;
}

/** Mounts of the postgres and bootstrap containers, in a fixed order. */
export function buildVolumeMounts(cluster: Cluster): VolumeMount[] {
  const { spec } = cluster;
  const mounts: VolumeMount[] = [
    { name: "pgdata", mountPath: paths.dataVolume },
    { name: "scratch-data", mountPath: "/run" },
    { name: "scratch-data", mountPath: paths.scratch },
    { name: "shm", mountPath: "/dev/shm" },
  ];
  if (spec.walStorage) mounts.push({ name: "pg-wal", mountPath: paths.walVolume });
  if (spec.projectedVolumeTemplate) mounts.push({ name: "projected", mountPath: "/projected" });
  for (const { name } of sortedTablespaces(cluster))
    mounts.push({ name: `tbs-${tablespaceVolumeName(name)}`, mountPath: `${paths.tablespaces}/${name}` });
  mounts.push(...extensionMounts("ext", "/extensions", currentExtensions(cluster)));
  return mounts;
}

/** Image volumes of extensions, under a prefix that tells the running set from the one of an upgrade. */
export function extensionVolumes(prefix: "ext" | "new", extensions: readonly ExtensionImage[]): Volume[] {
  return extensions.map(({ name, image }) => ({
    name: `${prefix}-${extensionVolumeName(name)}`,
    image: present({ reference: image?.reference, pullPolicy: image?.pullPolicy }),
  }));
}

/** Mounts that belong to `extensionVolumes`. */
export function extensionMounts(
  prefix: "ext" | "new",
  folder: "/extensions" | "/new-extensions",
  extensions: readonly ExtensionImage[],
): VolumeMount[] {
  return extensions.map(({ name }) => ({
    name: `${prefix}-${extensionVolumeName(name)}`,
    mountPath: `${folder}/${name}`,
  }));
}

function currentExtensions(cluster: Cluster): readonly ExtensionImage[] {
  return cluster.status?.pgDataImageInfo?.extensions ?? [];
}

function scratchVolume(cluster: Cluster): Volume {
  const { ephemeralVolumeSource, ephemeralVolumesSizeLimit } = cluster.spec;
  if (ephemeralVolumeSource) return { name: "scratch-data", ephemeral: ephemeralVolumeSource };
  return {
    name: "scratch-data",
    emptyDir: present<EmptyDirVolumeSource>({ sizeLimit: ephemeralVolumesSizeLimit?.temporaryData }),
  };
}

function sortedTablespaces(cluster: Cluster) {
  return [...(cluster.spec.tablespaces ?? [])].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}
