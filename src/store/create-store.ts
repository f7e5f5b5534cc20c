import type { StoreConnection } from "../barman/store-configuration.ts";
import type { ObjectStore } from "../ports/object-store.ts";
import { createFolderStore } from "./folder-store.ts";
import { readCaBundle } from "./s3-options.ts";
import { createS3Store } from "./s3-store.ts";

/** What of the environment matters to the clients. */
export type StoreEnvironment = Readonly<Record<string, string | undefined>>;

/** Server-side encryption of what is written. */
export interface StoreEncryption {
  encryption?: "AES256" | "aws:kms" | undefined;
  kmsKeyId?: string | undefined;
}

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
        ...encryption,
      });
    case "folder":
      return createFolderStore({ folder: destination.bucket });
    case "azure":
    case "gcs":
      throw new Error(`this version reaches s3:// and file:// only, not ${destination.provider}`);
  }
}
