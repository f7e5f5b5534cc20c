import { clusterName, clusterNamespace } from "../api/cluster-facts.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import type {
  PersistentVolumeClaim,
  PersistentVolumeClaimSpec,
  TypedLocalObjectReference,
} from "../api/generated/kubernetes.ts";
import { annotations, labels } from "../api/labels.ts";
import { instanceName, tablespacePvcName, walPvcName } from "../api/names.ts";
import type { BuildContext } from "./context.ts";
import { childMetadata, volumeLabels } from "./metadata.ts";
import { present } from "./present.ts";

type Storage = NonNullable<Cluster["spec"]["storage"]>;

/** One volume that an instance needs. */
export type ExpectedPvc =
  | { role: "PG_DATA"; name: string; storage: Storage }
  | { role: "PG_WAL"; name: string; storage: Storage }
  | { role: "PG_TABLESPACE"; name: string; storage: Storage; tablespace: string };

/** What volumes are filled from when an instance starts from snapshots or other volumes. */
export interface PvcSources {
  data: TypedLocalObjectReference;
  wal?: TypedLocalObjectReference;
  /** By tablespace name. */
  tablespaces?: Record<string, TypedLocalObjectReference>;
}

/** The volumes of one instance, in the order data, WAL, tablespaces of the spec. */
export function expectedPvcs(cluster: Cluster, instance: string): ExpectedPvc[] {
  const { storage, walStorage, tablespaces } = cluster.spec;
  return [
    { role: "PG_DATA", name: instance, storage: storage ?? {} },
    ...(walStorage ? [{ role: "PG_WAL" as const, name: walPvcName(instance), storage: walStorage }] : []),
    ...(tablespaces ?? []).map((tablespace) => ({
      role: "PG_TABLESPACE" as const,
      name: tablespacePvcName(instance, tablespace.name),
      storage: tablespace.storage,
      tablespace: tablespace.name,
    })),
  ];
}

/** The claims of a new instance. Throws when a size is missing, which admission refuses. */
export function buildPvcs(
  cluster: Cluster,
  serial: number,
  context: BuildContext,
  sources?: PvcSources,
): PersistentVolumeClaim[] {
  const instance = instanceName(clusterName(cluster), serial);
  return expectedPvcs(cluster, instance).map((expected) => {
    const source = sources && volumeSource(expected, sources);
    return buildPvc(cluster, serial, expected, context, source ? { source } : {});
  });
}

/** One claim of an instance. `status` defaults to `initializing` for data and `ready` for the rest. */
export function buildPvc(
  cluster: Cluster,
  serial: number,
  expected: ExpectedPvc,
  context: BuildContext,
  options: { source?: TypedLocalObjectReference; status?: "initializing" | "ready" } = {},
): PersistentVolumeClaim {
  const status = options.status ?? (expected.role === "PG_DATA" ? "initializing" : "ready");
  return {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: childMetadata(cluster, context, {
      name: expected.name,
      labels: { ...volumeLabels, ...pvcLabels(expected, instanceName(clusterName(cluster), serial)) },
      annotations: { [annotations.nodeSerial]: String(serial), [annotations.pvcStatus]: status },
    }),
    spec: pvcSpec(cluster, expected, options.source),
  };
}

/** Labels that say what a volume is for. */
export function pvcLabels(expected: ExpectedPvc, instance: string): Record<string, string> {
  return {
    [labels.instanceName]: instance,
    [labels.pvcRole]: expected.role,
    ...(expected.role === "PG_TABLESPACE" ? { [labels.tablespaceName]: expected.tablespace } : {}),
  };
}

/** Size that a storage section asks for; `undefined` when it names none. */
export function requestedSize(storage: Storage): string | number | undefined {
  return storage.size || storage.pvcTemplate?.resources?.requests?.["storage"];
}

function pvcSpec(
  cluster: Cluster,
  expected: ExpectedPvc,
  source: TypedLocalObjectReference | undefined,
): PersistentVolumeClaimSpec {
  const { storage } = expected;
  const template = storage.pvcTemplate ?? {};
  if (requestedSize(storage) === undefined)
    throw new Error(
      `volume ${expected.name} of cluster ${clusterNamespace(cluster)}/${clusterName(cluster)} has no size: ` +
        "set size or a storage request in the pvcTemplate",
    );
  return present<PersistentVolumeClaimSpec>({
    ...template,
    accessModes: template.accessModes && template.accessModes.length > 0 ? template.accessModes : ["ReadWriteOnce"],
    storageClassName: storage.storageClass ?? template.storageClassName,
    resources: storage.size ? { ...template.resources, requests: { storage: storage.size } } : template.resources,
    dataSource: source ?? template.dataSource,
  });
}

/** What one volume is filled from. */
export function volumeSource(expected: ExpectedPvc, sources: PvcSources): TypedLocalObjectReference | undefined {
  switch (expected.role) {
    case "PG_DATA":
      return sources.data;
    case "PG_WAL":
      return sources.wal;
    case "PG_TABLESPACE":
      return sources.tablespaces?.[expected.tablespace];
  }
}
