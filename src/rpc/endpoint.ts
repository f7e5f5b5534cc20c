import { createHash } from "node:crypto";

/** A plugin behind a unix socket, in plain text: the folder's permissions protect it. */
export interface SocketEndpoint {
  kind: "socket";
  name: string;
  /** Absolute path of the socket file. */
  path: string;
}

/** A plugin behind TCP with mutual TLS. */
export interface TlsEndpoint {
  kind: "tls";
  name: string;
  /** Host and port that are dialled. */
  address: string;
  /** Name that the server's certificate must carry; not the address. */
  serverName: string;
  /** PEM: what the server's certificate is checked with, often that very certificate. */
  serverRoots: string;
  /** PEM: the client's own certificate and key. */
  clientCertificate: string;
  clientKey: string;
}

export type PluginEndpoint = SocketEndpoint | TlsEndpoint;

/** Equal for endpoints that one connection can serve: same address, same certificates. */
export function endpointFingerprint(endpoint: PluginEndpoint): string {
  const parts =
    endpoint.kind === "socket"
      ? [endpoint.kind, endpoint.path]
      : [
          endpoint.kind,
          endpoint.address,
          endpoint.serverName,
          endpoint.serverRoots,
          endpoint.clientCertificate,
          endpoint.clientKey,
        ];
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}
