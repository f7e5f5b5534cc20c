import type { Cluster } from "../../api/generated/cluster.ts";
import { type FieldIssue, invalid } from "./field-issue.ts";
import { type ClusterRule, when } from "./rule.ts";

type Store = NonNullable<NonNullable<Cluster["spec"]["backup"]>["barmanObjectStore"]>;
type CredentialField = "destinationPath" | "azureCredentials" | "s3Credentials" | "googleCredentials";

/** The in-tree object store and how long backups are kept. */
export const checkBackup: ClusterRule = ({ spec }) => {
  const { barmanObjectStore, retentionPolicy } = spec.backup ?? {};
  return [
    ...(barmanObjectStore ? checkCredentials("spec.backup.barmanObjectStore", barmanObjectStore) : []),
    ...when(
      Boolean(retentionPolicy) && !/^[1-9][0-9]*[dwm]$/.test(retentionPolicy ?? ""),
      invalid("spec.backup.retentionPolicy", retentionPolicy, "not a valid retention policy"),
    ),
  ];
};

/** That a store names the credentials of one provider, completely and in one way. */
export function checkCredentials(path: string, store: Pick<Store, CredentialField>): FieldIssue[] {
  const { azureCredentials, s3Credentials, googleCredentials } = store;
  const given = [azureCredentials, s3Credentials, googleCredentials].filter(Boolean).length;
  const one = "One and only one of azureCredentials, s3Credentials and googleCredentials are required";
  return [
    ...when(given === 0, invalid(path, store.destinationPath, `missing credentials. ${one}`)),
    ...when(given > 1, invalid(path, store.destinationPath, `too many credentials. ${one}`)),
    ...(azureCredentials ? checkAzure(`${path}.azureCredentials`, azureCredentials) : []),
    ...(s3Credentials ? checkAws(`${path}.awsCredentials`, s3Credentials) : []),
    ...(googleCredentials ? checkGoogle(`${path}.googleCredentials`, googleCredentials) : []),
  ];
}

function checkAzure(path: string, azure: NonNullable<Store["azureCredentials"]>): FieldIssue[] {
  const { connectionString, storageAccount, storageKey, storageSasToken } = azure;
  const { inheritFromAzureAD = false, useDefaultAzureCredentials = false } = azure;
  const ways = [inheritFromAzureAD, useDefaultAzureCredentials, storageKey, storageSasToken].filter(Boolean).length;
  if (connectionString)
    return when(
      ways > 0 || storageAccount !== undefined,
      invalid(path, azure, "when connection string is specified, the other parameters must be empty"),
    );
  return [
    ...when(
      ways !== 1,
      invalid(
        path,
        azure,
        "when connection string is not specified, one and only one of storage key, storage SAS token, " +
          "Azure AD authentication, or default Azure credentials is required",
      ),
    ),
    ...when(
      (storageKey !== undefined || storageSasToken !== undefined) && !storageAccount,
      invalid(path, azure, "storage account must be specified when using storage key or SAS token"),
    ),
  ];
}

function checkAws(path: string, aws: NonNullable<Store["s3Credentials"]>): FieldIssue[] {
  const { accessKeyId, secretAccessKey, inheritFromIAMRole = false } = aws;
  const half = (accessKeyId === undefined) !== (secretAccessKey === undefined);
  const keys = accessKeyId !== undefined && secretAccessKey !== undefined;
  return [
    ...when(
      half,
      invalid(path, aws, "when using AWS credentials both accessKeyId and secretAccessKey must be provided"),
    ),
    ...when(
      !half && !keys && !inheritFromIAMRole,
      invalid(path, aws, "at least one AWS authentication method should be supplied"),
    ),
    ...when(
      (keys || half) && inheritFromIAMRole,
      invalid(path, aws, "only one AWS authentication method should be supplied"),
    ),
  ];
}

function checkGoogle(path: string, google: NonNullable<Store["googleCredentials"]>): FieldIssue[] {
  const { gkeEnvironment = false, applicationCredentials } = google;
  return [
    ...when(
      !gkeEnvironment && !applicationCredentials,
      invalid(path, google, "if gkeEnvironment is false, secret with credentials must be provided"),
    ),
    ...when(
      gkeEnvironment && applicationCredentials !== undefined,
      invalid(path, google, "if gkeEnvironment is true, secret with credentials must not be provided"),
    ),
  ];
}
