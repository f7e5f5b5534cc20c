// The twelve kinds, in the order in which manifests list them: by name of the definition.
import { backup } from "./backup.ts";
import { cluster } from "./cluster.ts";
import { clusterImageCatalog } from "./cluster-image-catalog.ts";
import { database } from "./database.ts";
import { databaseRole } from "./database-role.ts";
import { failoverQuorum } from "./failover-quorum.ts";
import { imageCatalog } from "./image-catalog.ts";
import { objectStore } from "./object-store.ts";
import type { CrdManifest } from "./parts/definition.ts";
import { pooler } from "./pooler.ts";
import { publication } from "./publication.ts";
import { scheduledBackup } from "./scheduled-backup.ts";
import { subscription } from "./subscription.ts";

export type { Schema } from "../../src/schema/crd/structural-schema.ts";
export type { CrdManifest } from "./parts/definition.ts";

/** Definitions of the eleven kinds that the operator serves. */
export const operatorDefinitions: readonly CrdManifest[] = [
  backup,
  cluster,
  clusterImageCatalog,
  database,
  databaseRole,
  failoverQuorum,
  imageCatalog,
  pooler,
  publication,
  scheduledBackup,
  subscription,
];

/** Definition of the kind that the barman-cloud plugin serves. */
export const pluginDefinitions: readonly CrdManifest[] = [objectStore];

/** All twelve definitions, sorted by name. */
export const customResourceDefinitions: readonly CrdManifest[] = [...operatorDefinitions, ...pluginDefinitions].sort(
  (a, b) => (a.metadata.name < b.metadata.name ? -1 : 1),
);
