import type { Cluster } from "../../src/api/generated/cluster.ts";
import type { ObjectStore } from "../../src/api/generated/objectstore.ts";

export const barmanPlugin = "barman-cloud.cloudnative-pg.io";

/** An ObjectStore on S3 whose credentials are in the Secret `keys`. */
export function anObjectStore(
  name: string,
  spec: Partial<ObjectStore["spec"]> = {},
  configuration: Partial<ObjectStore["spec"]["configuration"]> = {},
): ObjectStore {
  return {
    apiVersion: "barmancloud.cnpg.io/v1",
    kind: "ObjectStore",
    metadata: { name, namespace: "shop", generation: 1 },
    spec: {
      configuration: {
        destinationPath: `s3://backups/${name}/`,
        s3Credentials: {
          accessKeyId: { name: "keys", key: "id" },
          secretAccessKey: { name: "keys", key: "secret" },
        },
        ...configuration,
      },
      ...spec,
    },
  };
}

/** A Cluster that archives into the ObjectStore `own`, unless the spec says something else. */
export function anArchivedCluster(spec: Partial<Cluster["spec"]> = {}, status: Cluster["status"] = {}): Cluster {
  return {
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Cluster",
    metadata: { name: "orders", namespace: "shop", uid: "uid-orders" },
    spec: {
      instances: 3,
      storage: { size: "1Gi" },
      plugins: [{ name: barmanPlugin, isWALArchiver: true, parameters: { barmanObjectName: "own" } }],
      ...spec,
    },
    status,
  };
}

/** An external cluster of the plugin. */
export function anExternalStore(name: string, parameters: Record<string, string>) {
  return { name, plugin: { name: barmanPlugin, parameters } };
}
