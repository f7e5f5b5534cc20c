import type { PluginSocket, PluginTls } from "../framework/create-plugin-server.ts";

/** Flags of the operator mode that say where it listens. */
export interface ListenFlags {
  pluginPath?: string;
  serverAddress?: string;
  serverCert?: string;
  serverKey?: string;
  clientCert?: string;
}

/** Where to listen; throws naming the flags that contradict each other or are missing. */
export function compileListen(flags: ListenFlags): PluginSocket | PluginTls {
  const tls = {
    "--server-address": flags.serverAddress,
    "--server-cert": flags.serverCert,
    "--server-key": flags.serverKey,
    "--client-cert": flags.clientCert,
  };
  const missing = Object.entries(tls).flatMap(([name, value]) => (value ? [] : [name]));
  if (missing.length === Object.keys(tls).length) {
    return { kind: "socket", ...(flags.pluginPath ? { folder: flags.pluginPath } : {}) };
  }
  if (missing.length > 0) throw new TypeError(`${missing.join(", ")} missing: give all four flags of TCP, or none`);
  if (flags.pluginPath) throw new TypeError("--plugin-path is for a socket, --server-address for TCP: give one");
  return {
    kind: "tls",
    address: flags.serverAddress ?? "",
    certificateFile: flags.serverCert ?? "",
    keyFile: flags.serverKey ?? "",
    clientRootsFile: flags.clientCert ?? "",
  };
}
