import type { Cluster } from "../../api/generated/cluster.ts";
import { tablespaceVolumeName } from "../../api/names.ts";
import { parseQuantity } from "../../api/quantity.ts";
import { duplicate, type FieldIssue, invalid } from "./field-issue.ts";
import { type ClusterRule, when } from "./rule.ts";

type Storage = NonNullable<Cluster["spec"]["storage"]>;

/** Volumes: their sizes, the names of tablespaces, the scratch volume. */
export const checkStorage: ClusterRule = (cluster) => {
  const { spec } = cluster;
  return [
    ...checkSize("spec.storage.size", spec.storage ?? {}),
    ...(spec.walStorage ? checkSize("spec.walStorage.size", spec.walStorage) : []),
    ...(spec.tablespaces ?? []).flatMap(({ storage }, i) => checkSize(`spec.tablespaces[${i}].size`, storage)),
    ...when(
      spec.ephemeralVolumeSource !== undefined && spec.ephemeralVolumesSizeLimit?.temporaryData !== undefined,
      duplicate(
        "spec.ephemeralVolumeSource",
        "Conflicting settings: provide either ephemeralVolumeSource or " +
          "ephemeralVolumesSizeLimit.TemporaryData, not both.",
      ),
    ),
    ...checkTablespaceNames(spec),
    ...checkSnapshotClasses(spec),
  ];
};

function checkSize(path: string, storage: Storage): FieldIssue[] {
  const size = storage.size;
  if (size) {
    const quantity = parseQuantity(size);
    return when(quantity === undefined || quantity <= 0n, invalid(path, size, "Size value isn't valid"));
  }
  return when(
    storage.pvcTemplate?.resources?.requests?.["storage"] === undefined,
    invalid(path, size ?? "", "Size not configured. Please add it, or a storage request in the pvcTemplate."),
  );
}

function checkTablespaceNames({ tablespaces = [] }: Cluster["spec"]): FieldIssue[] {
  const names = new Set<string>();
  const volumes = new Set<string>();
  return tablespaces.flatMap(({ name }, i) => {
    const path = `spec.tablespaces[${i}]`;
    const volume = tablespaceVolumeName(name);
    const sameName = names.has(name.toLowerCase());
    const sameVolume = volumes.has(volume);
    names.add(name.toLowerCase());
    volumes.add(volume);
    return [
      ...when(sameName, invalid(path, name, "duplicate tablespace name")),
      ...when(
        name.startsWith("pg_"),
        invalid(path, name, "tablespace names beginning 'pg_' are reserved for Postgres"),
      ),
      ...when(
        !/^[A-Za-z_][A-Za-z0-9_$]*$/.test(name),
        invalid(
          path,
          name,
          "tablespace names must be valid Postgres identifiers: alphanumeric characters, '_', '$', " +
            "and must start with a letter or an underscore",
        ),
      ),
      ...when(name.length > 63, invalid(path, name, "the maximum length of an identifier is 63 characters")),
      ...when(
        sameVolume && !sameName,
        invalid(
          path,
          name,
          `tablespace name results in duplicate volume name "${volume}" after sanitization ` +
            "(special characters are converted to hyphens)",
        ),
      ),
    ];
  });
}

function checkSnapshotClasses({ backup, tablespaces = [] }: Cluster["spec"]): FieldIssue[] {
  const known = new Set(tablespaces.map(({ name }) => name));
  return Object.keys(backup?.volumeSnapshot?.tablespaceClassName ?? {})
    .filter((name) => !known.has(name))
    .map((name) =>
      invalid(
        "spec.backup.volumeSnapshot.tablespaceClassName",
        name,
        `specified the VolumeSnapshot backup configuration for the tablespace: ${name}, ` +
          "but it can't be found in the '.spec.tablespaces' stanza",
      ),
    );
}
