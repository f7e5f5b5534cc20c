import type { Cluster } from "../api/generated/cluster.ts";

type Store = NonNullable<NonNullable<Cluster["spec"]["backup"]>["barmanObjectStore"]>;

/** Names of the Secrets that access to an object store needs; entries without a name are left in as `undefined`. */
export function objectStoreSecrets(
  store: Pick<Store, "azureCredentials" | "s3Credentials" | "googleCredentials" | "endpointCA"> | undefined,
): (string | undefined)[] {
  const { s3Credentials: s3, azureCredentials: azure, googleCredentials: google, endpointCA } = store ?? {};
  return [
    s3?.accessKeyId,
    s3?.secretAccessKey,
    s3?.region,
    s3?.sessionToken,
    azure?.connectionString,
    azure?.storageAccount,
    azure?.storageKey,
    azure?.storageSasToken,
    google?.applicationCredentials,
    endpointCA,
  ].map((reference) => reference?.name);
}
