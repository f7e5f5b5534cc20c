import type { Destination } from "./destination.ts";
import type { StoreCredentials } from "./store-configuration.ts";

/** What a storage account is reached by. */
export interface AzureAccount {
  account: string;
  /** Scheme and host, with the account in the path where a service wants it there. */
  endpoint: string;
  secret:
    | { kind: "key"; key: string }
    | { kind: "sas"; token: string }
    | { kind: "identity"; identity: "managed" | "default" };
}

type AzureCredentials = Extract<StoreCredentials, { provider: "azure" }>;

/** Finds out how a destination's account is reached; the text of the failure names the field that is amiss. */
export function resolveAzureAccount(
  destination: Destination,
  credentials: AzureCredentials,
  endpointUrl: string | undefined,
): AzureAccount | { error: string } {
  const named = destination.azure;
  const written = credentials.connectionString === undefined ? {} : parseConnectionString(credentials.connectionString);
  if ("error" in written) return written;
  const account = credentials.account || written.account || named?.account || "";
  if (account === "") return { error: "azureCredentials names no storage account" };
  const endpoint = endpointUrl ? placeAccount(endpointUrl, account, named?.emulator ?? false) : undefined;
  const secret = chooseSecret(credentials, written);
  if (!secret) {
    return {
      error:
        "azureCredentials needs one of connectionString, storageKey, storageSasToken, inheritFromAzureAD, useDefaultAzureCredentials",
    };
  }
  return { account, endpoint: endpoint ?? written.endpoint ?? named?.endpoint ?? "", secret };
}

interface ConnectionString {
  account?: string | undefined;
  key?: string | undefined;
  sas?: string | undefined;
  endpoint?: string | undefined;
}

/** Reads `Name=value;…`, whose values may hold further equals signs. */
function parseConnectionString(text: string): ConnectionString | { error: string } {
  const values = new Map<string, string>();
  for (const part of text.split(";")) {
    const at = part.indexOf("=");
    if (at > 0) values.set(part.slice(0, at).trim().toLowerCase(), part.slice(at + 1).trim());
  }
  const account = values.get("accountname");
  const key = values.get("accountkey");
  const sas = values.get("sharedaccesssignature");
  const blob = values.get("blobendpoint")?.replace(/\/+$/, "");
  if ((!key && !sas) || (!account && !blob)) {
    return { error: "the connection string names no AccountName with an AccountKey or a SharedAccessSignature" };
  }
  const scheme = values.get("defaultendpointsprotocol") || "https";
  const suffix = values.get("endpointsuffix") || "core.windows.net";
  return { account, key, sas, endpoint: blob || `${scheme}://${account}.blob.${suffix}` };
}

function chooseSecret(credentials: AzureCredentials, written: ConnectionString): AzureAccount["secret"] | undefined {
  const token = written.sas ?? credentials.sasToken;
  if (written.key) return { kind: "key", key: written.key };
  if (token) return { kind: "sas", token };
  if (credentials.key) return { kind: "key", key: credentials.key };
  return credentials.identity ? { kind: "identity", identity: credentials.identity } : undefined;
}

/** An emulator's address may come without the account, which it wants in the path. */
function placeAccount(url: string, account: string, emulator: boolean): string {
  const clean = url.replace(/\/+$/, "");
  return emulator && /^https?:\/\/[^/]+$/i.test(clean) ? `${clean}/${account}` : clean;
}
