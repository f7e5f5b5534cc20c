import type { ObjectStore } from "../api/generated/objectstore.ts";
import { type CompressionName, parseCompressionLevel } from "./compression.ts";
import { type Destination, formatDestination, parseDestination } from "./destination.ts";
import { parseToolArguments, type ToolArguments } from "./tool-arguments.ts";

/** How an object store is written in a Cluster and in an ObjectStore. */
export type StoreConfiguration = ObjectStore["spec"]["configuration"];

/** A key of a Secret. */
export interface SecretKey {
  name: string;
  key: string;
}

/** Values of Secret keys; `undefined` for what is not there. */
export type SecretValues = (reference: SecretKey) => string | undefined;

/** Credentials with their values. Without any, the environment is asked: instance role, web identity, managed identity. */
export type StoreCredentials =
  | { provider: "s3"; keys?: { accessKeyId: string; secretAccessKey: string; sessionToken?: string } }
  | {
      provider: "azure";
      connectionString?: string;
      account?: string;
      key?: string;
      sasToken?: string;
      identity?: "managed" | "default";
    }
  | { provider: "gcs"; applicationCredentials?: string };

/** Everything that reaching an archive takes. The same for archive, restore, backup, list, check and delete. */
export interface StoreConnection {
  destination: Destination;
  credentials: StoreCredentials;
  endpoint: string | undefined;
  /** PEM. */
  ca: string | undefined;
  region: string | undefined;
  addressing: "auto" | "path" | "virtual" | undefined;
  readTimeoutMs: number | undefined;
  profile: string | undefined;
}

/** How WAL goes into an archive, beside where. */
export interface WalConfiguration {
  compression: CompressionName | undefined;
  level: number | undefined;
  encryption: "AES256" | "aws:kms" | undefined;
  kmsKeyId: string | undefined;
  maxParallel: number | undefined;
  /** Whether a partial segment may stand for one that is not there. */
  partials: boolean;
  tags: Readonly<Record<string, string>>;
  historyTags: Readonly<Record<string, string>>;
}

/** The Secret keys whose values `buildConnection` will ask for. */
export function listSecretKeys(configuration: StoreConfiguration): SecretKey[] {
  const { s3Credentials: s3, azureCredentials: azure, googleCredentials: google, endpointCA } = configuration;
  const inherited = s3?.inheritFromIAMRole === true;
  // Where the pod's own identity counts, nobody grants the Secrets that are named beside it.
  const ambient = azure?.inheritFromAzureAD || azure?.useDefaultAzureCredentials;
  const keys = [
    ...(inherited ? [] : [s3?.accessKeyId, s3?.secretAccessKey, s3?.sessionToken]),
    s3?.region,
    ...(ambient ? [] : [azure?.connectionString, azure?.storageAccount, azure?.storageKey, azure?.storageSasToken]),
    google?.applicationCredentials,
    endpointCA,
  ];
  return keys.filter((key) => key !== undefined);
}

/** Puts the connection together; the text of the failure names the field or the Secret that is amiss. */
export function buildConnection(
  configuration: StoreConfiguration,
  secrets: SecretValues,
): StoreConnection | { error: string } {
  const destination = parseDestination(configuration.destinationPath);
  if ("error" in destination) return destination;
  const missing = listSecretKeys(configuration).find((reference) => secrets(reference) === undefined);
  if (missing) return { error: `Secret ${missing.name} with key ${missing.key} is not there` };
  const value = (reference: SecretKey | undefined) => (reference ? secrets(reference) : undefined);
  const credentials = buildCredentials(configuration, destination, value);
  if ("error" in credentials) return credentials;
  const extra = parseAll(configuration);
  return {
    destination,
    credentials,
    endpoint: configuration.endpointURL || extra.endpointUrl,
    ca: value(configuration.endpointCA),
    region: value(configuration.s3Credentials?.region),
    addressing: extra.addressing,
    readTimeoutMs: extra.readTimeoutMs,
    profile: extra.profile,
  };
}

/** Reads what concerns WAL, in both directions. */
export function buildWalConfiguration(configuration: StoreConfiguration): WalConfiguration {
  const { wal, tags = {}, historyTags = {} } = configuration;
  const extra = parseToolArguments(wal?.archiveAdditionalCommandArgs);
  const compression = wal?.compression;
  const level =
    compression && extra.compressionLevel !== undefined
      ? parseCompressionLevel(compression, extra.compressionLevel)
      : undefined;
  const encryption = wal?.encryption ?? extra.encryption;
  return {
    compression,
    level,
    encryption: encryption === "AES256" || encryption === "aws:kms" ? encryption : undefined,
    kmsKeyId: extra.kmsKeyId,
    maxParallel: wal?.maxParallel,
    partials: parseToolArguments(wal?.restoreAdditionalCommandArgs).noPartial !== true,
    tags,
    historyTags,
  };
}

/** Additional arguments that our engine has no meaning for, for a warning. */
export function unknownArguments(configuration: StoreConfiguration): readonly string[] {
  return parseAll(configuration).unknown;
}

/** Which archive a configuration names, without the server: two equal texts mean the same place. */
export function describeArchive(connection: StoreConnection): string {
  return `${connection.endpoint ?? ""} ${formatDestination(connection.destination)}`.trim();
}

/** The options that the Go plugin would hand to `barman-cloud-wal-archive`, for the log. */
export function buildWalArchiveOptions(configuration: StoreConfiguration, serverName: string): string[] {
  const { wal, endpointURL, tags = {}, historyTags = {} } = configuration;
  return [
    ...(wal?.compression ? [`--${wal.compression}`] : []),
    ...(wal?.encryption ? ["-e", wal.encryption] : []),
    ...(wal?.archiveAdditionalCommandArgs ?? []),
    ...(endpointURL ? ["--endpoint-url", endpointURL] : []),
    ...tagOptions("--tags", tags),
    ...tagOptions("--history-tags", historyTags),
    "--cloud-provider",
    providerName(configuration),
    ...azureCredentialOptions(configuration),
    configuration.destinationPath,
    serverName,
  ];
}

function buildCredentials(
  configuration: StoreConfiguration,
  destination: Destination,
  value: (reference: SecretKey | undefined) => string | undefined,
): StoreCredentials | { error: string } {
  const { s3Credentials: s3, googleCredentials: google, azureCredentials: azure } = configuration;
  if (s3 && destination.provider === "s3") return s3Keys(s3, value);
  if (google && destination.provider === "gcs") {
    const json = value(google.applicationCredentials);
    if (json === undefined && google.gkeEnvironment !== true) {
      return { error: "googleCredentials needs applicationCredentials, or gkeEnvironment: true" };
    }
    return { provider: "gcs", ...(json === undefined ? {} : { applicationCredentials: json }) };
  }
  if (azure && destination.provider === "azure") {
    const ambient = azure.inheritFromAzureAD || azure.useDefaultAzureCredentials;
    const secret = (reference: SecretKey | undefined) => (ambient ? undefined : value(reference));
    return defined({
      provider: "azure" as const,
      connectionString: secret(azure.connectionString),
      account: secret(azure.storageAccount),
      key: secret(azure.storageKey),
      sasToken: secret(azure.storageSasToken),
      identity: azure.inheritFromAzureAD
        ? ("managed" as const)
        : azure.useDefaultAzureCredentials
          ? ("default" as const)
          : undefined,
    });
  }
  if (destination.provider === "folder") return { provider: "s3" };
  const given = s3 ? "s3Credentials" : google ? "googleCredentials" : azure ? "azureCredentials" : undefined;
  return {
    error: given
      ? `${given} does not fit the destinationPath ${configuration.destinationPath}`
      : "no credentials defined",
  };
}

function s3Keys(
  s3: NonNullable<StoreConfiguration["s3Credentials"]>,
  value: (reference: SecretKey | undefined) => string | undefined,
): StoreCredentials | { error: string } {
  if (s3.inheritFromIAMRole) return { provider: "s3" };
  const [accessKeyId, secretAccessKey] = [value(s3.accessKeyId), value(s3.secretAccessKey)];
  if (accessKeyId === undefined || secretAccessKey === undefined) {
    return { error: "s3Credentials needs accessKeyId and secretAccessKey, or inheritFromIAMRole: true" };
  }
  const sessionToken = value(s3.sessionToken);
  return { provider: "s3", keys: { accessKeyId, secretAccessKey, ...(sessionToken ? { sessionToken } : {}) } };
}

function parseAll({ wal, data }: StoreConfiguration): ToolArguments {
  return parseToolArguments(
    wal?.archiveAdditionalCommandArgs,
    wal?.restoreAdditionalCommandArgs,
    data?.additionalCommandArgs,
    data?.restoreAdditionalCommandArgs,
  );
}

function providerName(configuration: StoreConfiguration): string {
  if (configuration.s3Credentials) return "aws-s3";
  return configuration.googleCredentials ? "google-cloud-storage" : "azure-blob-storage";
}

function azureCredentialOptions({ azureCredentials: azure }: StoreConfiguration): string[] {
  if (azure?.useDefaultAzureCredentials) return ["--credential", "default"];
  return azure?.inheritFromAzureAD ? ["--credential", "managed-identity"] : [];
}

function tagOptions(option: string, tags: Readonly<Record<string, string>>): string[] {
  const pairs = Object.entries(tags).map(([name, value]) => `${name},${value}`);
  return pairs.length === 0 ? [] : [option, ...pairs.sort()];
}

function defined<T extends object>(
  value: T,
): { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
} {
  return Object.fromEntries(Object.entries(value).filter(([, item]) => item !== undefined)) as never;
}
