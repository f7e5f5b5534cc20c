// The container that runs beside PostgreSQL, as data. Peers compare it field by field with what another release of the
// plugin would give, so that a swap restarts no pod: order and values are a contract.
import type { Cluster } from "../../api/generated/cluster.ts";
import type { Container, EnvVar, Volume, VolumeMount } from "../../api/generated/kubernetes.ts";
import type { ObjectStore } from "../../api/generated/objectstore.ts";
import { pluginSocketFolder } from "../../api/plugin-service.ts";

/** Name of the sidecar in every pod. */
export const sidecarName = "plugin-barman-cloud";

export const certificatesVolume = "barman-certificates";
export const certificatesFolder = "/barman-certificates";
const spoolFolder = "/controller/wal-restore-spool";

/** File of a store's certificate authority below the folder of certificates. */
export function certificateFile(objectStore: string): string {
  return `${objectStore}/barman-ca.crt`;
}

export interface SidecarInput {
  cluster: Cluster;
  image: string;
  /** Container whose environment and volumes the sidecar shares. */
  main: Container;
  mode: "instance" | "restore";
  /** Every store that the Cluster refers to, each once: own, recovery, replica source. */
  stores: readonly ObjectStore[];
  /** The one whose sidecar settings count for arguments and resources. */
  settings: ObjectStore | undefined;
}

/** Builds the sidecar. */
export function buildSidecar({ cluster, image, main, mode, stores, settings }: SidecarInput): Container {
  const pullPolicy = cluster.spec.imagePullPolicy;
  const resources = settings?.spec.instanceSidecarConfiguration?.resources;
  return {
    name: sidecarName,
    image,
    ...(pullPolicy ? { imagePullPolicy: pullPolicy } : {}),
    args: mode === "restore" ? ["restore"] : instanceArguments(settings),
    env: buildEnvironment(cluster, main, stores),
    resources: (resources ?? {}) as NonNullable<Container["resources"]>,
    restartPolicy: "Always",
    startupProbe: {
      exec: { command: ["/manager", "healthcheck", "unix"] },
      periodSeconds: 1,
      timeoutSeconds: 5,
      failureThreshold: 30,
    },
    securityContext: {
      allowPrivilegeEscalation: false,
      privileged: false,
      runAsNonRoot: true,
      readOnlyRootFilesystem: true,
      seccompProfile: { type: "RuntimeDefault" },
      capabilities: { drop: ["ALL"] },
    },
    volumeMounts: buildMounts(main, stores),
  };
}

/** The projected volume with the authorities of the stores' endpoints; `undefined` when no store names one. */
export function buildCertificatesVolume(stores: readonly ObjectStore[]): Volume | undefined {
  const sources = stores
    .flatMap(({ metadata, spec }) => {
      const ca = spec.configuration.endpointCA;
      return ca && metadata.name ? [{ store: metadata.name, ca }] : [];
    })
    .sort((left, right) => (left.store < right.store ? -1 : 1))
    .map(({ store, ca }) => ({
      secret: { name: ca.name, items: [{ key: ca.key, path: certificateFile(store) }] },
    }));
  return sources.length === 0 ? undefined : { name: certificatesVolume, projected: { sources } };
}

function instanceArguments(settings: ObjectStore | undefined): string[] {
  const { additionalContainerArgs = [], logLevel } = settings?.spec.instanceSidecarConfiguration ?? {};
  return ["instance", ...additionalContainerArgs, ...(logLevel ? [`--log-level=${logLevel}`] : [])];
}

function buildEnvironment(cluster: Cluster, main: Container, stores: readonly ObjectStore[]): EnvVar[] {
  const [group = "", version = ""] = (cluster.apiVersion ?? "").split("/");
  const wanted: EnvVar[] = [
    ...(main.env ?? []),
    { name: "NAMESPACE", value: cluster.metadata.namespace ?? "" },
    { name: "CLUSTER_NAME", value: cluster.metadata.name ?? "" },
    { name: "SPOOL_DIRECTORY", value: spoolFolder },
    { name: "CUSTOM_CNPG_GROUP", value: group },
    { name: "CUSTOM_CNPG_VERSION", value: version },
    ...stores.flatMap((store) => (store.spec.instanceSidecarConfiguration?.env ?? []) as EnvVar[]),
  ];
  const byName = new Map<string, EnvVar>();
  for (const variable of wanted) if (!byName.has(variable.name)) byName.set(variable.name, variable);
  return [...byName.values()];
}

/** One mount for each volume: of a volume that the main container mounts twice the later place counts. */
function buildMounts(main: Container, stores: readonly ObjectStore[]): VolumeMount[] {
  const byVolume = new Map<string, VolumeMount>();
  if (buildCertificatesVolume(stores)) {
    byVolume.set(certificatesVolume, { name: certificatesVolume, mountPath: certificatesFolder });
  }
  for (const mount of main.volumeMounts ?? []) byVolume.set(mount.name, mount);
  if (!byVolume.has("plugins")) byVolume.set("plugins", { name: "plugins", mountPath: pluginSocketFolder });
  return [...byVolume.values()];
}
