import { resolveAzureAccount } from "../barman/azure-account.ts";
import type { StoreConnection } from "../barman/store-configuration.ts";
import type { StoreEncryption } from "../barman/store-encryption.ts";
import type { ObjectStore } from "../ports/object-store.ts";
import { createFolderStore } from "./folder-store.ts";
import { readProxy } from "./proxy.ts";
import { readCaBundle } from "./s3-options.ts";
import { createS3Store } from "./s3-store.ts";
import { TokenSource } from "./token-source.ts";

/** What of the environment matters to the clients. */
export type StoreEnvironment = Readonly<Record<string, string | undefined>>;

/** Connects to an archive's store. The one place where clients are made, so that all calls reach the endpoint in the same way. */
export async function createObjectStore(
  connection: StoreConnection,
  environment: StoreEnvironment,
  encryption: StoreEncryption = {},
): Promise<ObjectStore> {
  const { destination, credentials } = connection;
  switch (destination.provider) {
    case "s3":
      return createS3Store({
        bucket: destination.bucket,
        endpoint: connection.endpoint,
        // The SDK knows AWS_REGION only; the variable that Barman's tools read is the other one.
        region: connection.region ?? environment["AWS_REGION"] ?? environment["AWS_DEFAULT_REGION"] ?? "us-east-1",
        credentials: credentials.provider === "s3" ? credentials.keys : undefined,
        profile: connection.profile,
        ca: connection.ca ?? readCaBundle(environment["AWS_CA_BUNDLE"]),
        addressing: connection.addressing,
        readTimeoutMs: connection.readTimeoutMs,
        encryption: encryption.encryption,
        kmsKeyId: encryption.kmsKeyId,
        proxy: readProxy(environment),
      });
    case "folder":
      return createFolderStore({ folder: destination.bucket });
    case "azure":
      return openAzure(connection, environment, encryption);
    case "gcs":
      return openGcs(connection, environment, encryption);
  }
}

/** The adapters are loaded here, not before: most programs never need them. */
async function openAzure(
  { destination, credentials, endpoint, ca, readTimeoutMs }: StoreConnection,
  environment: StoreEnvironment,
  { encryptionScope }: StoreEncryption,
): Promise<ObjectStore> {
  if (credentials.provider !== "azure") throw new Error("the credentials are not those of a storage account");
  const found = resolveAzureAccount(destination, credentials, endpoint);
  if ("error" in found) throw new Error(found.error);
  const [{ createAzureStore }, { azureTokens }] = await Promise.all([
    import("./azure/azure-store.ts"),
    import("./azure/azure-identity.ts"),
  ]);
  const { account, secret } = found;
  const authorization =
    secret.kind === "identity"
      ? { kind: "token" as const, source: new TokenSource(azureTokens(secret.identity, environment)) }
      : secret;
  return createAzureStore({
    account,
    endpoint: found.endpoint,
    container: destination.bucket,
    authorization,
    encryptionScope,
    ca: ca ?? readCaBundle(environment["REQUESTS_CA_BUNDLE"]),
    readTimeoutMs,
    proxy: readProxy(environment),
  });
}

async function openGcs(
  { destination, credentials, endpoint, ca, readTimeoutMs }: StoreConnection,
  environment: StoreEnvironment,
  { kmsKeyName }: StoreEncryption,
): Promise<ObjectStore> {
  if (credentials.provider !== "gcs") throw new Error("the credentials are not Google's");
  const [{ createGcsStore }, { googleIdentity }] = await Promise.all([
    import("./gcs/gcs-store.ts"),
    import("./gcs/google-identity.ts"),
  ]);
  const emulator = environment["STORAGE_EMULATOR_HOST"];
  // As in Google's libraries: an emulator asks for no credentials.
  const identity =
    endpoint === undefined && emulator
      ? undefined
      : await googleIdentity(credentials.applicationCredentials, environment);
  return createGcsStore({
    bucket: destination.bucket,
    endpoint: endpoint ?? emulatorUrl(emulator),
    tokens: identity ? new TokenSource(identity.fetch) : undefined,
    project: identity?.project ?? (async () => environment["GOOGLE_CLOUD_PROJECT"] || "emulator"),
    kmsKeyName,
    ca,
    readTimeoutMs,
    proxy: readProxy(environment),
  });
}

function emulatorUrl(host: string | undefined): string | undefined {
  if (!host) return undefined;
  return host.includes("://") ? host : `http://${host}`;
}
