import type { RestOptions } from "../rest-session.ts";
import type { TokenSource } from "../token-source.ts";

/** How to reach one bucket. */
export interface GcsOptions extends RestOptions {
  bucket: string;
  /** @default https://storage.googleapis.com */
  endpoint?: string | undefined;
  /** Absent for an emulator, which asks for none. */
  tokens?: TokenSource | undefined;
  /** Project in which a missing bucket is made. */
  project?: (() => Promise<string>) | undefined;
  /** Key of Google's key management that encrypts what is written. */
  kmsKeyName?: string | undefined;
}
