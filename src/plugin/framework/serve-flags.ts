import { parseArgs } from "node:util";
import type { PluginSocket, PluginTls } from "./create-plugin-server.ts";

/** The usual flags of a plugin program: `--plugin-path`, or `--server-address` with `--server-cert`, `--server-key`, `--client-cert`. */
export function parseServeFlags(args: readonly string[]): PluginSocket | PluginTls {
  const { values } = parseArgs({
    // Manifests of Go plugins may have it; how much is told is the logger's business here.
    args: args.filter((arg) => !/^--debug(=|$)/.test(arg)),
    options: {
      "plugin-path": { type: "string" },
      "server-address": { type: "string" },
      "server-cert": { type: "string" },
      "server-key": { type: "string" },
      "client-cert": { type: "string" },
    },
  });
  const names = ["server-address", "server-cert", "server-key", "client-cert"] as const;
  const given = names.filter((name) => values[name]);
  if (given.length === 0)
    return { kind: "socket", ...(values["plugin-path"] ? { folder: values["plugin-path"] } : {}) };
  const missing = names.filter((name) => !values[name]);
  if (missing.length > 0) {
    throw new TypeError(`--${given.join(", --")} without --${missing.join(", --")}: give all four, or none`);
  }
  if (values["plugin-path"]) throw new TypeError("--plugin-path is for a socket, --server-address for TCP: give one");
  return {
    kind: "tls",
    address: values["server-address"] ?? "",
    certificateFile: values["server-cert"] ?? "",
    keyFile: values["server-key"] ?? "",
    clientRootsFile: values["client-cert"] ?? "",
  };
}
