import type { CrdKind } from "../../../src/schema/crd/index.ts";

/** The smallest spec of each kind that its schema and rules accept. */
export const minimalSpecs = {
  Backup: { cluster: { name: "pg" } },
  Cluster: { instances: 1, storage: { size: "1Gi" } },
  ClusterImageCatalog: { images: [{ major: 17, image: "pg:17" }] },
  Database: { cluster: { name: "pg" }, name: "app", owner: "app" },
  DatabaseRole: { cluster: { name: "pg" }, name: "app" },
  FailoverQuorum: undefined,
  ImageCatalog: { images: [{ major: 17, image: "pg:17" }] },
  ObjectStore: { configuration: { destinationPath: "s3://bucket/" } },
  Pooler: { cluster: { name: "pg" }, pgbouncer: {} },
  Publication: { cluster: { name: "pg" }, dbname: "app", name: "pub", target: { allTables: true } },
  ScheduledBackup: { cluster: { name: "pg" }, schedule: "0 0 0 * * *" },
  Subscription: {
    cluster: { name: "pg" },
    dbname: "app",
    externalClusterName: "other",
    name: "sub",
    publicationName: "pub",
  },
} as const satisfies Record<CrdKind, object | undefined>;

/** A manifest of a kind around a spec; `undefined` for kinds without one. */
export function manifestOf(kind: CrdKind, spec: object | undefined, name = "test"): Record<string, unknown> {
  const group = kind === "ObjectStore" ? "barmancloud.cnpg.io" : "postgresql.cnpg.io";
  return { apiVersion: `${group}/v1`, kind, metadata: { name }, ...(spec ? { spec } : {}) };
}
