import { randomBytes } from "node:crypto";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { choosePort } from "../../local/process/free-port.ts";
import { npmEnvironment } from "../../local/tools/npm-environment.ts";
import type { AzureOptions } from "../../src/store/azure/azure-options.ts";
import { startStoreServer, statusOf } from "./store-server.ts";

/** A real server of Azure's blob protocol (Azurite) of its own on a loopback port; all is in its memory. */
export interface AzureServer {
  readonly port: number;
  readonly account: string;
  readonly key: string;
  /** With the account in the path. */
  readonly endpoint: string;
  readonly connectionString: string;
  /** What a client needs for one container. */
  options(container: string): AzureOptions;
  /** The end of what the server wrote. */
  output(): string;
  stop(): Promise<void>;
}

/** Starts the server; with a certificate it also takes access tokens, whose form it checks. */
export async function startAzureServer(tls?: { cert: string; key: string }): Promise<AzureServer> {
  const program = join(await npmEnvironment("azurite"), "node_modules/azurite/dist/src/blob/main.js");
  const folder = await mkdtemp(join(tmpdir(), "azure-"));
  const [account, key] = ["testaccount", randomBytes(64).toString("base64")];
  const port = await choosePort();
  const secure: string[] = [];
  if (tls) {
    await writeFile(join(folder, "tls.crt"), tls.cert);
    await writeFile(join(folder, "tls.key"), tls.key);
    secure.push("--oauth", "basic", "--cert", join(folder, "tls.crt"), "--key", join(folder, "tls.key"));
  }
  const flags = ["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent", ...secure];
  const server = await startStoreServer({
    name: "Azure",
    command: process.execPath,
    args: [program, "--blobPort", String(port), ...flags],
    cwd: folder,
    env: { PATH: process.env["PATH"], AZURITE_ACCOUNTS: `${account}:${key}` },
    leftovers: [folder],
    isUp: async () => (await statusOf(port, "/", tls !== undefined)) !== undefined,
  });
  const [scheme, host] = tls ? ["https", "localhost"] : ["http", "127.0.0.1"];
  const endpoint = `${scheme}://${host}:${port}/${account}`;
  const parts = [`AccountName=${account}`, `AccountKey=${key}`, `BlobEndpoint=${endpoint}`];
  return {
    port,
    account,
    key,
    endpoint,
    connectionString: `DefaultEndpointsProtocol=${scheme};${parts.join(";")};`,
    options: (container) => ({ account, endpoint, container, authorization: { kind: "key", key } }),
    output: server.output,
    stop: server.stop,
  };
}
