import { createServer, request, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { StoreConnection } from "../../../src/barman/store-configuration.ts";
import type { ObjectStore } from "../../../src/ports/object-store.ts";
import { azureTokens } from "../../../src/store/azure/azure-identity.ts";
import { createObjectStore, type StoreEnvironment } from "../../../src/store/create-store.ts";
import { googleIdentity } from "../../../src/store/gcs/google-identity.ts";
import { readProxy } from "../../../src/store/proxy.ts";
import { type S3Server, startS3Server } from "../../support/s3-server.ts";
import { createTestAuthority, type TestAuthority } from "../../support/tls-files.ts";
import { type FaultyS3, startFaultyS3 } from "./faulty-s3.ts";

let server: S3Server;
let secure: FaultyS3;
let authority: TestAuthority;
let proxy: Server;
/** What the proxy was asked for: URLs, and hosts to be connected with. */
let asked: string[] = [];

beforeAll(async () => {
  [server, authority] = await Promise.all([startS3Server(), createTestAuthority()]);
  secure = await startFaultyS3(server.port, await authority.issue("localhost"));
  proxy = createServer((incoming, outgoing) => {
    asked.push(`${incoming.method} ${incoming.url}`);
    // Names that only the proxy knows.
    const { hostname, pathname, search } = new URL(incoming.url ?? "");
    if (hostname === "login.test") {
      outgoing.end(JSON.stringify({ access_token: "from-afar", expires_in: 3_600 }));
      return;
    }
    const target = { host: "127.0.0.1", port: server.port, path: pathname + search };
    const sent = request({ ...target, method: incoming.method ?? "GET", headers: incoming.headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 0, answer.headers);
      answer.pipe(outgoing);
    });
    sent.on("error", () => outgoing.destroy());
    incoming.pipe(sent);
  });
  proxy.on("connect", (incoming, client, head) => {
    asked.push(`CONNECT ${incoming.url}`);
    const line = connect(Number(incoming.url?.split(":").at(-1)), "127.0.0.1", () => {
      client.write("HTTP/1.1 200 Connection established\r\n\r\n");
      line.write(head);
      line.pipe(client).pipe(line);
    });
    for (const [one, other] of [
      [line, client],
      [client, line],
    ] as const) {
      one.on("error", () => other.destroy());
    }
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
}, 900_000);

afterAll(async () => {
  proxy?.closeAllConnections();
  proxy?.close();
  await secure?.stop();
  await Promise.all([server?.stop(), authority?.remove()]);
});

beforeEach(() => {
  asked = [];
});

function open(endpoint: string, environment: StoreEnvironment): Promise<ObjectStore> {
  const connection: StoreConnection = {
    destination: { provider: "s3", bucket: "proxied", path: "" },
    credentials: { provider: "s3", keys: { accessKeyId: server.accessKey, secretAccessKey: server.secretKey } },
    endpoint,
    ca: authority.ca,
    region: "us-east-1",
    addressing: "path",
    readTimeoutMs: 20_000,
    profile: undefined,
  };
  return createObjectStore(connection, environment);
}

async function roundTrip(store: ObjectStore, text: string): Promise<void> {
  await store.checkBucket({ create: true });
  await store.put("k", [Buffer.from(text)]);
  expect((await store.head("k"))?.size).toBe(text.length);
  store.close();
}

test("a store that only the environment's proxy reaches is reached by it, and its certificate is checked by us", async () => {
  const address = `127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  await roundTrip(await open("http://objects.test", { HTTP_PROXY: address }), "plain");
  expect(asked).toContain("PUT http://objects.test/proxied/k?x-id=PutObject");

  asked = [];
  await roundTrip(await open(secure.endpoint, { https_proxy: `http://${address}` }), "by TLS");
  expect(new Set(asked)).toEqual(new Set([`CONNECT ${new URL(secure.endpoint).host}`]));
});

test("issuers of tokens are asked by it too", async () => {
  const HTTP_PROXY = `127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const principal = { AZURE_TENANT_ID: "t", AZURE_CLIENT_ID: "c", AZURE_CLIENT_SECRET: "s" };
  const azure = azureTokens("default", { ...principal, AZURE_AUTHORITY_HOST: "http://login.test", HTTP_PROXY });
  expect((await azure()).token).toBe("from-afar");
  const user = { type: "authorized_user", client_id: "c", client_secret: "s", refresh_token: "r" };
  const json = JSON.stringify({ ...user, token_uri: "http://login.test/token" });
  const google = await googleIdentity(json, { HTTP_PROXY });
  expect((await google.fetch()).token).toBe("from-afar");
  expect(asked).toEqual(["POST http://login.test/t/oauth2/v2.0/token", "POST http://login.test/token"]);
});

test("a host that is named as an exception is reached without it", async () => {
  const address = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  await roundTrip(await open(server.endpoint, { HTTP_PROXY: address, NO_PROXY: "127.0.0.1,localhost" }), "direct");
  expect(asked).toEqual([]);
});

test.each([
  [{}, undefined],
  [{ NO_PROXY: "minio" }, undefined],
  [{ HTTPS_PROXY: "" }, undefined],
  [
    { HTTPS_PROXY: "proxy:3128", no_proxy: "minio" },
    { HTTPS_PROXY: "http://proxy:3128", NO_PROXY: "minio" },
  ],
  [{ http_proxy: "http://a:1", HTTP_PROXY: "http://b:1" }, { HTTP_PROXY: "http://a:1" }],
])("of %j the proxy is %j", (environment, expected) => {
  expect(readProxy(environment)).toEqual(expected);
});
