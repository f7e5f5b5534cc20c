import type { StoreConfiguration } from "./store-configuration.ts";
import { parseToolArguments } from "./tool-arguments.ts";

/** How a store is asked to encrypt what is written, each by the words of its own provider. */
export interface StoreEncryption {
  encryption?: "AES256" | "aws:kms" | undefined;
  /** S3, only with `aws:kms`. */
  kmsKeyId?: string | undefined;
  /** Azure. */
  encryptionScope?: string | undefined;
  /** Google Cloud Storage. */
  kmsKeyName?: string | undefined;
}

/** Reads the encryption of WAL or of base backups, which may differ. */
export function buildEncryption({ wal, data }: StoreConfiguration, purpose: "wal" | "data"): StoreEncryption {
  const extra = parseToolArguments(purpose === "wal" ? wal?.archiveAdditionalCommandArgs : data?.additionalCommandArgs);
  const asked = (purpose === "wal" ? wal?.encryption : data?.encryption) || extra.encryption;
  const encryption = asked === "AES256" || asked === "aws:kms" ? asked : undefined;
  return {
    encryption,
    kmsKeyId: encryption === "aws:kms" ? extra.kmsKeyId : undefined,
    encryptionScope: extra.encryptionScope,
    kmsKeyName: extra.kmsKeyName,
  };
}
