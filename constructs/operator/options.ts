import type { ProgramResources } from "../base/program-resources.ts";
import { compileSecurity, type ProgramSecurity } from "../base/program-security.ts";

export interface OperatorOptions {
  /** Image of the operator, also copied into each instance pod. @default - the published image of this release */
  readonly image?: string;
  /** @default IfNotPresent */
  readonly imagePullPolicy?: string;
  /** Namespace of the operator. @default cnpg-system */
  readonly namespace?: string;
  /** Number of operator pods; one is active, the others stand by. @default 1 */
  readonly replicas?: number;
  /** Settings of the operator by name, for example `INHERITED_LABELS`. */
  readonly settings?: Readonly<Record<string, string>>;
  /** @default info */
  readonly logLevel?: string;
  /** Clusters that are reconciled side by side. @default 10 */
  readonly maxConcurrentReconciles?: number;
  /** Serves profiles of the operator on port 6060 of its pod, to whoever reaches it. @default false */
  readonly profiler?: boolean;
  /** Writes the webhook configurations. Without them the operator still checks each object before it acts. @default true */
  readonly webhooks?: boolean;
  /** Writes the custom resource definitions. @default true */
  readonly crds?: boolean;
  readonly security?: ProgramSecurity;
  /** @default requests 100m CPU and 100Mi memory, limits 1 CPU and 256Mi */
  readonly resources?: ProgramResources;
}

/** Options with nothing left open. */
export interface CompiledOperatorOptions {
  readonly image: string;
  readonly imagePullPolicy: string;
  readonly namespace: string;
  readonly replicas: number;
  readonly settings: Readonly<Record<string, string>>;
  readonly logLevel: string;
  readonly maxConcurrentReconciles: number;
  readonly profiler: boolean;
  readonly webhooks: boolean;
  readonly crds: boolean;
  readonly security: Required<ProgramSecurity>;
  readonly resources: ProgramResources;
}

/** Fills in the defaults and refuses what can't work, naming the option. */
export function compileOperatorOptions(options: OperatorOptions): CompiledOperatorOptions {
  const replicas = options.replicas ?? 1;
  if (!Number.isInteger(replicas) || replicas < 0) {
    throw new Error(`operator option "replicas" is ${replicas}: give a whole number of at least 0`);
  }
  const concurrency = options.maxConcurrentReconciles ?? 10;
  if (!Number.isInteger(concurrency) || concurrency < 1) {
    throw new Error(`operator option "maxConcurrentReconciles" is ${concurrency}: give a whole number of at least 1`);
  }
  return {
    image: options.image ?? "localhost/cnpg-ts:dev",
    imagePullPolicy: options.imagePullPolicy ?? "IfNotPresent",
    namespace: options.namespace ?? "cnpg-system",
    replicas,
    settings: options.settings ?? {},
    logLevel: options.logLevel ?? "info",
    maxConcurrentReconciles: concurrency,
    profiler: options.profiler ?? false,
    webhooks: options.webhooks ?? true,
    crds: options.crds ?? true,
    security: compileSecurity(options.security),
    resources: options.resources ?? {
      requests: { cpu: "100m", memory: "100Mi" },
      limits: { cpu: "1", memory: "256Mi" },
    },
  };
}
