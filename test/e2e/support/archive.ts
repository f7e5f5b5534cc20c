import type { Cluster } from "../../../src/api/generated/cluster.ts";
import { apply, localInfo } from "./kubectl.ts";

/** Name of the barman-cloud plugin. */
export const plugin = "barman-cloud.cloudnative-pg.io";

const secret = "archive-keys";

/** Makes an ObjectStore `archive` in the namespace, with a folder of its own in the local S3 server's bucket. */
export async function createObjectStore(namespace: string): Promise<void> {
  await createStoreKeys(namespace);
  await apply({
    apiVersion: "barmancloud.cnpg.io/v1",
    kind: "ObjectStore",
    metadata: { namespace, name: "archive" },
    spec: { configuration: { ...(await storeConfiguration(namespace)), wal: { compression: "gzip" } } },
  });
}

/** Makes the Secret that {@link storeConfiguration} names. */
export async function createStoreKeys(namespace: string): Promise<void> {
  const s3 = await localStore();
  await apply({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { namespace, name: secret },
    stringData: { ACCESS_KEY_ID: s3.accessKey, ACCESS_SECRET_KEY: s3.secretKey },
  });
}

/** The same place as the in-tree `barmanObjectStore` of a Cluster has it. */
export async function storeConfiguration(namespace: string) {
  const s3 = await localStore();
  return {
    destinationPath: `${s3.destinationPath}${namespace}`,
    endpointURL: s3.endpointInCluster,
    s3Credentials: {
      accessKeyId: { name: secret, key: "ACCESS_KEY_ID" },
      secretAccessKey: { name: secret, key: "ACCESS_SECRET_KEY" },
    },
  };
}

/** `spec.plugins` of a cluster that archives into the ObjectStore. */
export function archivedBy(serverName?: string): NonNullable<Cluster["spec"]["plugins"]> {
  const parameters = { barmanObjectName: "archive", ...(serverName ? { serverName } : {}) };
  return [{ name: plugin, isWALArchiver: true, parameters }];
}

/** How this machine reaches the local S3 server. */
export async function localStore() {
  const { s3 } = await localInfo();
  if (!s3) throw new Error("the local cluster has no S3 server: start it anew with `npm start`");
  return s3;
}
