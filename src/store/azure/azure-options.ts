import type { RestOptions } from "../rest-session.ts";
import type { TokenSource } from "../token-source.ts";

/** How requests to a storage account are allowed. */
export type AzureAuthorization =
  | { kind: "key"; key: string }
  | { kind: "sas"; token: string }
  | { kind: "token"; source: TokenSource };

/** How to reach one container. */
export interface AzureOptions extends RestOptions {
  account: string;
  /** For example `https://ACCOUNT.blob.core.windows.net`; emulators have the account in the path. */
  endpoint: string;
  container: string;
  authorization: AzureAuthorization;
  /** Named encryption of what is written. */
  encryptionScope?: string | undefined;
}
