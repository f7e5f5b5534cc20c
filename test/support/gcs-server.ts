import { choosePort } from "../../local/process/free-port.ts";
import { ensureTools, toolPath } from "../../local/tools/build.ts";
import type { GcsOptions } from "../../src/store/gcs/gcs-options.ts";
import { startStoreServer, statusOf } from "./store-server.ts";

/** A server of Google's storage protocol (fake-gcs-server) of its own on a loopback port; all is in its memory. */
export interface GcsServer {
  readonly port: number;
  readonly endpoint: string;
  /** What a client needs for one bucket; the server asks for no credentials. */
  options(bucket: string): GcsOptions;
  /** The end of what the server wrote. */
  output(): string;
  stop(): Promise<void>;
}

/** Starts the server; builds it into the cache when it is not there. */
export async function startGcsServer(): Promise<GcsServer> {
  await ensureTools(["fake-gcs-server"]);
  const port = await choosePort();
  const endpoint = `http://127.0.0.1:${port}`;
  const flags = ["-scheme", "http", "-host", "127.0.0.1", "-port", String(port), "-backend", "memory"];
  const server = await startStoreServer({
    name: "GCS",
    command: toolPath("fake-gcs-server"),
    args: [...flags, "-external-url", endpoint, "-public-host", `127.0.0.1:${port}`, "-log-level", "warn"],
    leftovers: [],
    isUp: async () => (await statusOf(port, "/storage/v1/b")) === 200,
  });
  return {
    port,
    endpoint,
    options: (bucket) => ({ bucket, endpoint, project: async () => "test" }),
    output: server.output,
    stop: server.stop,
  };
}
