import type { ProgramResources } from "../base/program-resources.ts";
import { compileSecurity, type ProgramSecurity } from "../base/program-security.ts";

/** Who makes the certificates between operator and plugin. */
export type PluginCertificates = "self" | "cert-manager";

export interface BarmanCloudPluginOptions {
  /** Image of the plugin. @default - the published image of this release */
  readonly image?: string;
  /** Image of the sidecar in instance pods and recovery Jobs. @default - the plugin's own image */
  readonly sidecarImage?: string;
  /** @default IfNotPresent */
  readonly imagePullPolicy?: string;
  /** Namespace of the plugin; must be the operator's, which looks for plugins there only. @default cnpg-system */
  readonly namespace?: string;
  /** Number of pods; each answers calls, one follows the ObjectStores. @default 1 */
  readonly replicas?: number;
  /** `self`: the plugin makes and renews them. `cert-manager`: that controller does, which must be installed. @default self */
  readonly certificates?: PluginCertificates;
  /** @default info */
  readonly logLevel?: string;
  /** Port of `/metrics`, by TLS and for those who hold the ClusterRole barman-plugin-metrics-reader. @default - no metrics */
  readonly metricsPort?: number;
  /** Writes the definition of ObjectStore. @default true */
  readonly crds?: boolean;
  /** Writes a policy by which the API server refuses ObjectStores with unusable credentials; needs Kubernetes 1.30. @default true */
  readonly storePolicy?: boolean;
  /** Of the plugin's own pod; sidecars have what an instance's pod needs. */
  readonly security?: ProgramSecurity;
  /** @default requests 10m CPU and 64Mi memory, limits 500m CPU and 192Mi */
  readonly resources?: ProgramResources;
}

/** Options with nothing left open. */
export interface CompiledPluginOptions {
  readonly image: string;
  readonly sidecarImage: string;
  readonly imagePullPolicy: string;
  readonly namespace: string;
  readonly replicas: number;
  readonly certificates: PluginCertificates;
  readonly logLevel: string;
  readonly metricsPort: number | undefined;
  readonly crds: boolean;
  readonly storePolicy: boolean;
  readonly security: Required<ProgramSecurity>;
  readonly resources: ProgramResources;
}

/** Fills in the defaults and refuses what can't work, naming the option. */
export function compilePluginOptions(options: BarmanCloudPluginOptions): CompiledPluginOptions {
  const replicas = options.replicas ?? 1;
  if (!Number.isInteger(replicas) || replicas < 0) {
    throw new Error(`plugin option "replicas" is ${replicas}: give a whole number of at least 0`);
  }
  const certificates = options.certificates ?? "self";
  if (certificates !== "self" && certificates !== "cert-manager") {
    throw new Error(`plugin option "certificates" is ${String(certificates)}: give "self" or "cert-manager"`);
  }
  const image = options.image ?? "localhost/plugin-barman-cloud:dev";
  return {
    image,
    sidecarImage: options.sidecarImage ?? image,
    imagePullPolicy: options.imagePullPolicy ?? "IfNotPresent",
    namespace: options.namespace ?? "cnpg-system",
    replicas,
    certificates,
    logLevel: options.logLevel ?? "info",
    metricsPort: checkPort(options.metricsPort),
    crds: options.crds ?? true,
    storePolicy: options.storePolicy ?? true,
    security: compileSecurity(options.security),
    resources: options.resources ?? {
      requests: { cpu: "10m", memory: "64Mi" },
      limits: { cpu: "500m", memory: "192Mi" },
    },
  };
}

function checkPort(port: number | undefined): number | undefined {
  if (port === undefined || (Number.isInteger(port) && port > 0 && port < 65_536)) return port;
  throw new Error(`plugin option "metricsPort" is ${port}: give the number of a port`);
}
