import type { Construct } from "constructs";
import { cnpgApiVersion } from "../../src/api/constants.ts";
import type { Cluster as ClusterObject } from "../../src/api/generated/cluster.ts";
import { CustomResource, type ResourceProps } from "../base/custom-resource.ts";

/** The whole `spec` of a Cluster, as the API has it. */
export type ClusterSpec = ClusterObject["spec"];

/** A volume: its size alone (`"10Gi"`), or everything the API takes. */
export type ClusterStorage = string | NonNullable<ClusterSpec["storage"]>;

export interface ClusterProps extends ResourceProps {
  /** Number of PostgreSQL instances: one primary, the rest replicas. @default 1 */
  readonly instances?: number;
  /** Operand image. @default - the operator's default image */
  readonly image?: string;
  /** Volume for the data folder. */
  readonly storage?: ClusterStorage;
  /** Volume of its own for the write-ahead log. @default - the log stays on the data volume */
  readonly walStorage?: ClusterStorage;
  /** PostgreSQL parameters; numbers and booleans are written as text. */
  readonly parameters?: Readonly<Record<string, string | number | boolean>>;
  /** Name of the application database created at first start. @default app */
  readonly database?: string;
  /** Owner of the application database. @default - the same name as the database */
  readonly owner?: string;
  /** Everything else of the API, passed through as it is; the props above win where both are given. */
  readonly spec?: ClusterSpec | Partial<ClusterSpec>;
}

/** A PostgreSQL cluster. */
export class Cluster extends CustomResource {
  constructor(scope: Construct, id: string, props: ClusterProps) {
    super(scope, id, props, { apiVersion: cnpgApiVersion, kind: "Cluster", spec: toSpec(props) });
  }

  /** Service through which the primary is reached. */
  get writeService(): string {
    return `${this.name}-rw`;
  }

  /** Service through which any replica is reached. */
  get readOnlyService(): string {
    return `${this.name}-ro`;
  }

  /** Secret with the application user's credentials. */
  get applicationSecret(): string {
    return `${this.name}-app`;
  }
}

/** Fields that mean the same whether they are empty or not there. Written empty, they differ for ever from what the operator keeps. */
const optionalWhenEmpty: readonly (keyof ClusterSpec)[] = [
  "env",
  "envFrom",
  "externalClusters",
  "imagePullSecrets",
  "plugins",
  "postgresql",
  "resources",
  "tablespaces",
  "topologySpreadConstraints",
];

/** An object without those of its fields that are empty lists or objects and among the named ones. */
function withoutEmpty<T extends object>(object: T, names: readonly string[]): T {
  const isEmpty = (value: unknown) => typeof value === "object" && value !== null && Object.keys(value).length === 0;
  return Object.fromEntries(
    Object.entries(object).filter(([name, value]) => !(names.includes(name) && isEmpty(value))),
  ) as T;
}

function toSpec(props: ClusterProps): object {
  const spec = completeSpec(props);
  const { postgresql } = spec;
  const whole = postgresql ? { ...spec, postgresql: withoutEmpty(postgresql, Object.keys(postgresql)) } : spec;
  return withoutEmpty(whole, optionalWhenEmpty);
}

function completeSpec(props: ClusterProps): object & { postgresql?: object } {
  const base: Partial<ClusterSpec> = props.spec ?? {};
  const spec = {
    ...base,
    // Written even when it is the default: kubectl refuses a Cluster without it before the API server could fill it in.
    instances: props.instances ?? base.instances ?? 1,
    ...(props.image !== undefined && { imageName: props.image }),
    ...(props.storage !== undefined && { storage: toStorage(props.storage) }),
    ...(props.walStorage !== undefined && { walStorage: toStorage(props.walStorage) }),
    ...(props.parameters && {
      postgresql: { ...base.postgresql, parameters: { ...base.postgresql?.parameters, ...props.parameters } },
    }),
    ...((props.database !== undefined || props.owner !== undefined) && { bootstrap: toBootstrap(base, props) }),
  };
  return spec;
}

function toStorage(storage: ClusterStorage): object {
  return typeof storage === "string" ? { size: storage } : storage;
}

function toBootstrap(base: Partial<ClusterSpec>, props: ClusterProps): object {
  const database = props.database ?? props.owner;
  return {
    ...base.bootstrap,
    initdb: { ...base.bootstrap?.initdb, database, owner: props.owner ?? database },
  };
}
