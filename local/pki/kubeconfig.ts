import { stringify } from "yaml";
import type { KeyPair } from "./authority.ts";

export interface KubeconfigInput {
  name: string;
  server: string;
  /** PEM of the authority that signed the server's certificate. */
  authority: string;
  client: KeyPair;
}

/** Text of a kubeconfig with everything inline, so that it can be copied elsewhere. */
export function renderKubeconfig({ name, server, authority, client }: KubeconfigInput): string {
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": name,
    clusters: [{ name, cluster: { server, "certificate-authority-data": base64(authority) } }],
    users: [
      {
        name,
        user: {
          "client-certificate-data": base64(client.certificate),
          "client-key-data": base64(client.key),
        },
      },
    ],
    contexts: [{ name, context: { cluster: name, user: name } }],
  });
}
