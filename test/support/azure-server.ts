import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { request as secureRequest } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { choosePort } from "../../local/process/free-port.ts";
import { npmEnvironment } from "../../local/tools/npm-environment.ts";
import type { AzureOptions } from "../../src/store/azure/azure-options.ts";

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
  const child = spawn(process.execPath, [program, "--blobPort", String(port), ...flags], {
    stdio: ["ignore", "pipe", "pipe"],
    cwd: folder,
    env: { PATH: process.env["PATH"], AZURITE_ACCOUNTS: `${account}:${key}` },
  });
  let output = "";
  const keep = (chunk: Buffer) => {
    output = (output + chunk.toString("utf8")).slice(-20_000);
  };
  child.stdout.on("data", keep);
  child.stderr.on("data", keep);
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await ended;
    }
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await untilAnswering(child, port, tls !== undefined, () => output);
  } catch (error) {
    await stop();
    throw error;
  }
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
    output: () => output,
    stop,
  };
}

async function untilAnswering(child: ChildProcess, port: number, secure: boolean, output: () => string) {
  const end = Date.now() + 60_000;
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the Azure server ended with ${child.exitCode}:\n${output()}`);
    if (await answers(port, secure)) return;
    if (Date.now() > end) throw new Error(`the Azure server does not answer:\n${output()}`);
    await sleep(100);
  }
}

function answers(port: number, secure: boolean): Promise<boolean> {
  return new Promise((resolve) => {
    const options = { host: "127.0.0.1", port, path: "/", timeout: 1000, rejectUnauthorized: false };
    const probe = (secure ? secureRequest : request)(options, (answer) => {
      answer.resume();
      resolve(true);
    });
    probe.on("error", () => resolve(false));
    probe.on("timeout", () => probe.destroy());
    probe.end();
  });
}
