import { backupSchema } from "../generated/backup.ts";
import { clusterSchema } from "../generated/cluster.ts";
import { clusterImageCatalogSchema } from "../generated/clusterimagecatalog.ts";
import { databaseSchema } from "../generated/database.ts";
import { databaseRoleSchema } from "../generated/databaserole.ts";
import { definitions } from "../generated/definitions.ts";
import { failoverQuorumSchema } from "../generated/failoverquorum.ts";
import { imageCatalogSchema } from "../generated/imagecatalog.ts";
import { objectStoreSchema } from "../generated/objectstore.ts";
import { poolerSchema } from "../generated/pooler.ts";
import { publicationSchema } from "../generated/publication.ts";
import { scheduledBackupSchema } from "../generated/scheduledbackup.ts";
import { subscriptionSchema } from "../generated/subscription.ts";
import type { Schema } from "./structural-schema.ts";

const sources = {
  Backup: backupSchema,
  Cluster: clusterSchema,
  ClusterImageCatalog: clusterImageCatalogSchema,
  Database: databaseSchema,
  DatabaseRole: databaseRoleSchema,
  FailoverQuorum: failoverQuorumSchema,
  ImageCatalog: imageCatalogSchema,
  ObjectStore: objectStoreSchema,
  Pooler: poolerSchema,
  Publication: publicationSchema,
  ScheduledBackup: scheduledBackupSchema,
  Subscription: subscriptionSchema,
} as const;

/** Name of a kind whose schema is known here. */
export type CrdKind = keyof typeof sources;

/** All kinds whose schemas are known here. */
export const crdKinds = Object.keys(sources) as readonly CrdKind[];

/** Whether a kind's schema is known here. */
export function isCrdKind(kind: string): kind is CrdKind {
  return Object.hasOwn(sources, kind);
}

const loaded = new Map<CrdKind, Schema>();
let loadedDefinitions: Readonly<Record<string, Schema>> | undefined;

/** Schema of a kind, in which shared parts stand as references. */
export function schemaOf(kind: CrdKind): Schema {
  let schema = loaded.get(kind);
  if (!schema) {
    schema = sources[kind]();
    loaded.set(kind, schema);
  }
  return schema;
}

/** The shared parts, by name. */
export function sharedDefinitions(): Readonly<Record<string, Schema>> {
  loadedDefinitions ??= definitions();
  return loadedDefinitions;
}

/** The schema itself, or the shared part that it refers to. */
export function resolve(schema: Schema): Schema {
  if (schema.$ref === undefined) return schema;
  const name = schema.$ref.slice("#/$defs/".length);
  const target = sharedDefinitions()[name];
  if (!target) throw new Error(`The stored schemas have no part ${name}: run "npm run generate".`);
  return target;
}
