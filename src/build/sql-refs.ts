import type { Volume, VolumeMount } from "../api/generated/kubernetes.ts";
import { type InitdbSection, sqlRefsFolders } from "./initdb-command.ts";

/** Volumes and mounts of the SQL files that the bootstrap refers to; one volume per reference. */
export function sqlRefsVolumes(section: InitdbSection): { volumes: Volume[]; mounts: VolumeMount[] } {
  const groups = [
    refsVolumes("post-init-application", sqlRefsFolders.application, section.postInitApplicationSQLRefs),
    refsVolumes("post-init-template", sqlRefsFolders.template, section.postInitTemplateSQLRefs),
    refsVolumes("post-init", sqlRefsFolders.postgres, section.postInitSQLRefs),
  ];
  return { volumes: groups.flatMap((group) => group.volumes), mounts: groups.flatMap((group) => group.mounts) };
}

function refsVolumes(
  suffix: string,
  folder: string,
  refs: InitdbSection["postInitSQLRefs"],
): { volumes: Volume[]; mounts: VolumeMount[] } {
  const secrets = refs?.secretRefs ?? [];
  const configMaps = refs?.configMapRefs ?? [];
  // The files are run in the order of their names, so all indexes have the same width.
  const width = String(secrets.length + configMaps.length).length;
  const index = (position: number) => String(position).padStart(width, "0");
  const file = (position: number) => `${index(position)}.sql`;
  const volumeName = (position: number) => `${index(position)}-${suffix}-sql`;
  const volumes: Volume[] = [
    ...secrets.map(({ name, key }, i) => ({
      name: volumeName(i),
      secret: { secretName: name, items: [{ key, path: file(i) }] },
    })),
    ...configMaps.map(({ name, key }, i) => ({
      name: volumeName(secrets.length + i),
      configMap: { name, items: [{ key, path: file(secrets.length + i) }] },
    })),
  ];
  const mounts = volumes.map((volume, i) => ({
    name: volume.name,
    readOnly: true,
    mountPath: `${folder}/${file(i)}`,
    subPath: file(i),
  }));
  return { volumes, mounts };
}
