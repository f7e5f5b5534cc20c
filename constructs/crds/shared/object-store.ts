import type { CelRule, Schema } from "../../../src/schema/crd/structural-schema.ts";
import {
  boolean,
  enumOf,
  extend,
  type Fields,
  integer,
  object,
  required,
  string,
  stringList,
  stringMap,
} from "../parts/builders.ts";
import { secretKey } from "./references.ts";

/** Credentials for Amazon S3 and stores that speak its protocol. */
export const s3Credentials: Schema = object("How to sign requests to S3 or a compatible store.", {
  accessKeyId: secretKey("Secret key that holds the access key ID."),
  inheritFromIAMRole: boolean("Take the credentials from the IAM role of the pod instead of a Secret."),
  region: secretKey("Secret key that holds the region's name."),
  secretAccessKey: secretKey("Secret key that holds the secret access key."),
  sessionToken: secretKey("Secret key that holds the session token of temporary credentials."),
});

/** Credentials for Azure Blob Storage. */
export const azureCredentials: Schema = object("How to sign requests to Azure Blob Storage.", {
  connectionString: secretKey("Secret key that holds a complete connection string."),
  inheritFromAzureAD: boolean("Take the credentials from the managed identity of the pod."),
  storageAccount: secretKey("Secret key that holds the storage account's name."),
  storageKey: secretKey("Secret key that holds the storage account's access key."),
  storageSasToken: secretKey("Secret key that holds a shared access signature."),
  useDefaultAzureCredentials: boolean("Try the default credential chain of Azure, one source after the other."),
});

/** Credentials for Google Cloud Storage. */
export const googleCredentials: Schema = object("How to sign requests to Google Cloud Storage.", {
  applicationCredentials: secretKey("Secret key that holds a service account's JSON file."),
  gkeEnvironment: boolean("Take the credentials from the GKE environment of the pod."),
});

/** Where an archive is and how to get at it: the fields that Cluster, ObjectStore and Backup status share. */
export const storeAccess: Fields = {
  azureCredentials,
  endpointCA: secretKey("Secret key that holds the CA bundle for the endpoint's certificate."),
  endpointURL: string("Endpoint to use instead of the provider's own, for compatible stores and emulators."),
  googleCredentials,
  s3Credentials,
};

const encryption = enumOf("Server-side encryption; without it the bucket's own setting applies.", [
  "AES256",
  "aws:kms",
]);

const walOptions: Schema = object("How WAL files are archived and fetched.", {
  archiveAdditionalCommandArgs: stringList("More arguments for the archive command, best written as --key=value."),
  compression: enumOf("Compression of WAL files; none by default.", ["bzip2", "gzip", "lz4", "snappy", "xz", "zstd"]),
  encryption,
  maxParallel: integer("WAL files archived or fetched side by side; one by default.", { minimum: 1 }),
  restoreAdditionalCommandArgs: stringList("More arguments for the restore command, best written as --key=value."),
});

const dataOptions: Schema = object("How base backups are taken.", {
  additionalCommandArgs: stringList("More arguments for the backup command, best written as --key=value."),
  compression: enumOf("Compression of base backups; none by default.", ["bzip2", "gzip", "lz4", "snappy"]),
  encryption,
  immediateCheckpoint: boolean("Start with a fast checkpoint instead of waiting for a spread one."),
  jobs: integer("Parts uploaded side by side.", { bits: 32, minimum: 1 }),
});

function objectStore(data: Schema, rules?: readonly CelRule[]): Schema {
  return object(
    "Object store that holds base backups and WAL files, in Barman's layout.",
    {
      ...storeAccess,
      data,
      destinationPath: required(
        string("URL of the folder under which each server has its own, such as s3://bucket/path.", { minLength: 1 }),
      ),
      historyTags: stringMap("Tags put on timeline history files."),
      serverName: string("Folder of this server under the destination path."),
      tags: stringMap("Tags put on backup and WAL files."),
      wal: walOptions,
    },
    rules ? { rules } : {},
  );
}

/** Object store configuration as it stands inside a Cluster. */
export const barmanObjectStore: Schema = objectStore(dataOptions);

/** Object store configuration of the plugin: restores take arguments, and the server's name comes from the cluster. */
export const pluginObjectStore: Schema = objectStore(
  extend(dataOptions, {
    restoreAdditionalCommandArgs: stringList("More arguments for the restore of base backups, best as --key=value."),
  }),
  [
    {
      rule: "!has(self.serverName)",
      message: "use the 'serverName' plugin parameter in the Cluster resource",
      fieldPath: ".serverName",
      reason: "FieldValueForbidden",
    },
  ],
);

/** How long backups are kept, as a number of days, weeks or months. */
export const retentionPolicy: Schema = string("How long backups are kept: a number and d, w or m, such as 30d.", {
  pattern: "^[1-9][0-9]*[dwm]$",
});
