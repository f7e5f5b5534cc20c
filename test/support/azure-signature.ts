import { createHmac } from "node:crypto";
import type { AzureServer } from "./azure-server.ts";

/** A shared access signature of a whole account, good for an hour. `permissions` as Azure writes them, in its order. */
export function accountSignature({ account, key }: AzureServer, permissions: string): string {
  const [version, services, types] = ["2021-12-02", "b", "sco"];
  const expiry = new Date(Date.now() + 3_600_000).toISOString().replace(/\.\d+Z$/, "Z");
  const text = [account, permissions, services, types, "", expiry, "", "", version, "", ""].join("\n");
  const signature = createHmac("sha256", Buffer.from(key, "base64")).update(text).digest("base64");
  const fields = { sv: version, ss: services, srt: types, sp: permissions, se: expiry, sig: signature };
  return new URLSearchParams(fields).toString();
}
