import { typedLocalObjectReference } from "../core/generated/kubernetes.ts";
import { boolean, type Fields, mapOf, object, required, string, use } from "../parts/builders.ts";
import { nameReference, secretKey } from "../shared/references.ts";
import { initdb } from "./initdb.ts";

/** Database and owner that an application finds after the bootstrap. */
const application: Fields = {
  database: string("Database of the application."),
  owner: string("Role that owns the application's database."),
  secret: nameReference("Secret with the owner's user name and password; made by the operator by default."),
};

const recoveryTarget = object("Where the replay of WAL stops; at its end by default.", {
  backupID: string("Backup to start from; chosen by the target by default."),
  exclusive: boolean("Stop just before the target instead of just after it."),
  targetImmediate: boolean("Stop as soon as the data is consistent."),
  targetLSN: string("Position in the WAL to stop at."),
  targetName: string("Named restore point to stop at."),
  targetTLI: string("Timeline to follow: a number, latest or current."),
  targetTime: string("Time to stop at."),
  targetXID: string("Transaction to stop at."),
});

const volumeSnapshots = object("Volumes that the instance starts from.", {
  storage: required(use("Source of the data volume.", typedLocalObjectReference)),
  tablespaceStorage: mapOf("Source of each tablespace's volume, by tablespace.", typedLocalObjectReference),
  walStorage: use("Source of the WAL volume.", typedLocalObjectReference),
});

/** `spec.bootstrap`: where the first instance gets its data from. */
export const bootstrap = object("Where the first instance gets its data from; a new, empty one by default.", {
  initdb,
  pg_basebackup: object("Copy a running server.", {
    ...application,
    source: required(string("External cluster to copy.", { minLength: 1 })),
  }),
  recovery: object("Restore a backup.", {
    ...application,
    backup: object("Backup object to restore.", {
      endpointCA: secretKey("Secret key that holds the CA bundle for the store's endpoint."),
      name: required(string("Name of the Backup.")),
    }),
    recoveryTarget,
    source: string("External cluster whose archive is restored."),
    volumeSnapshots,
  }),
});
