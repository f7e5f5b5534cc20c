import { once } from "node:events";
import { connect as connectTls, createServer, type TLSSocket, type Server as TlsServer } from "node:tls";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { PluginError } from "../../../src/ports/plugin.ts";
import type { TlsEndpoint } from "../../../src/rpc/endpoint.ts";
import { issuedByUnknown, type Pair, selfSigned } from "./certificates.ts";
import { createLab, type Lab, pluginName, serverName } from "./lab.ts";
import { recordingPlugin } from "./recording-plugin.ts";

let lab: Lab;
let right: TlsEndpoint;
beforeEach(async () => {
  lab = await createLab();
  const { server } = await lab.start("tls", recordingPlugin([]));
  right = lab.tlsEndpoint(server.address);
});
afterEach(() => lab.end());

async function failureOf(endpoint: TlsEndpoint): Promise<PluginError> {
  const loading = lab.pool(endpoint).load([endpoint.name], { budgetMs: 3_000 });
  return loading.then(
    () => expect.fail("the plugin was loaded"),
    (error: PluginError) => error,
  );
}

describe("our client", () => {
  it("refuses a server with another certificate", async () => {
    const other = await selfSigned(serverName);
    const error = await failureOf({ ...right, serverRoots: other.cert });
    expect(error).toMatchObject({ kind: "unavailable", plugin: pluginName });
    expect(error.message).toMatch(/self-signed certificate|unable to verify/);
  });

  it("refuses a certificate of another name, whatever the address is", async () => {
    const error = await failureOf({ ...right, serverName: "another-service" });
    expect(error.message).toContain("another-service");
  });

  it("does not use the proxy of the environment", async () => {
    const names = ["http_proxy", "https_proxy", "grpc_proxy", "HTTP_PROXY", "HTTPS_PROXY"];
    for (const name of names) process.env[name] = "http://127.0.0.1:1";
    try {
      expect((await lab.load(right)).name).toBe(pluginName);
    } finally {
      for (const name of names) delete process.env[name];
    }
  });

  it.each([
    ["TLS 1.2", { maxVersion: "TLSv1.2", ALPNProtocols: ["h2"] }],
    ["another protocol than HTTP/2", { ALPNProtocols: ["http/1.1"] }],
    ["no protocol negotiation", {}],
  ] as const)("refuses a server that speaks %s", async (_, options) => {
    const { server, address } = await startPlainTls(options);
    try {
      const error = await failureOf({ ...right, address });
      expect(error).toMatchObject({ kind: "unavailable" });
    } finally {
      server.close();
    }
  });
});

describe("our server", () => {
  it.each([
    ["a self-signed certificate that it does not know", () => selfSigned("operator")],
    ["a certificate of an unknown authority", () => issuedByUnknown("operator")],
  ])("refuses a client with %s", async (_, make) => {
    const pair = await make();
    const error = await failureOf({ ...right, clientCertificate: pair.cert, clientKey: pair.key });
    expect(error.kind).toBe("unavailable");
  });

  it("trusts a client's own certificate although an authority issued it, as Go does", async () => {
    const pair = await issuedByUnknown("operator");
    await lab.end();
    lab = await createLab();
    lab.client.cert = pair.cert;
    const { server } = await lab.start("tls", recordingPlugin([]));
    const endpoint = { ...lab.tlsEndpoint(server.address), clientCertificate: pair.cert, clientKey: pair.key };
    expect((await lab.load(endpoint)).name).toBe(pluginName);
  });

  it("refuses a client without certificate", async () => {
    expect(await handshake(right, { minVersion: "TLSv1.3" })).toMatch(/alert|closed/i);
  });

  it("refuses TLS 1.2", async () => {
    const { clientCertificate: cert, clientKey: key } = right;
    expect(await handshake(right, { cert, key, maxVersion: "TLSv1.2" })).toMatch(/protocol version|closed/i);
    expect(await handshake(right, { cert, key })).toBe("accepted TLSv1.3 h2");
  });
});

/** How a bare TLS client fares. With TLS 1.3 the server's verdict comes after the client's side is done. */
async function handshake(
  { address, serverRoots }: TlsEndpoint,
  options: Partial<Pair> & { minVersion?: "TLSv1.3"; maxVersion?: "TLSv1.2" },
): Promise<string> {
  const [host, port] = address.split(":");
  const socket: TLSSocket = connectTls({
    host: host ?? "",
    port: Number(port),
    servername: serverName,
    ca: serverRoots,
    ALPNProtocols: ["h2"],
    ...options,
  });
  const verdict = new Promise<string>((resolve) => {
    socket.on("error", (error) => resolve(error.message));
    socket.on("close", () => resolve("closed"));
    // The server's SETTINGS frame is the first thing an accepted HTTP/2 client hears.
    socket.on("data", () => resolve(`accepted ${socket.getProtocol()} ${socket.alpnProtocol}`));
  });
  const text = await verdict;
  socket.destroy();
  return text;
}

async function startPlainTls(options: object): Promise<{ server: TlsServer; address: string }> {
  const server = createServer({ cert: lab.server.cert, key: lab.server.key, ...options }, (socket) => {
    socket.on("error", () => undefined);
    socket.resume();
  });
  server.on("tlsClientError", () => undefined);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (typeof address !== "object" || !address) throw new Error("the server has no port");
  return { server, address: `127.0.0.1:${address.port}` };
}
