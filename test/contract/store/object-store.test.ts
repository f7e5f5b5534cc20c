import { createHash, randomBytes } from "node:crypto";
import dns from "node:dns";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { listAll, type ObjectStore, ObjectStoreError } from "../../../src/ports/object-store.ts";
import { createAzureStore } from "../../../src/store/azure/azure-store.ts";
import { createFolderStore } from "../../../src/store/folder-store.ts";
import { createGcsStore } from "../../../src/store/gcs/gcs-store.ts";
import { createS3Store } from "../../../src/store/s3-store.ts";
import { type AzureServer, startAzureServer } from "../../support/azure-server.ts";
import { type GcsServer, startGcsServer } from "../../support/gcs-server.ts";
import { type S3Server, startS3Server } from "../../support/s3-server.ts";
import { createTestAuthority } from "../../support/tls-files.ts";
import { answerWith, type FaultyS3, startFaultyS3 } from "./faulty-s3.ts";

const mib = 1 << 20;
let server: S3Server;
let proxy: FaultyS3;
let folder: string;
let azure: AzureServer;
let gcs: GcsServer;
const stores: Record<string, (bucket: string) => Promise<ObjectStore>> = {
  azure: async (bucket) => createAzureStore(azure.options(bucket)),
  gcs: async (bucket) => createGcsStore(gcs.options(bucket)),
  s3: (bucket) => createS3Store(server.options(bucket)),
  folder: async (bucket) => createFolderStore({ folder: join(folder, bucket) }),
};

beforeAll(async () => {
  [server, azure, gcs] = await Promise.all([startS3Server(), startAzureServer(), startGcsServer()]);
  proxy = await startFaultyS3(server.port);
  folder = await mkdtemp(join(tmpdir(), "store-"));
  // The first run on a machine builds and installs the servers.
}, 900_000);

afterAll(async () => {
  await proxy?.stop();
  await Promise.all([server?.stop(), azure?.stop(), gcs?.stop()]);
  if (folder) await rm(folder, { recursive: true, force: true });
});

async function bytesOf(store: ObjectStore, key: string): Promise<Buffer> {
  const body = await store.get(key);
  const chunks: Uint8Array[] = [];
  for await (const chunk of body.chunks) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function* streamOf(bytes: Buffer, chunk: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += chunk) yield bytes.subarray(at, at + chunk);
}

const kindOf = (work: Promise<unknown>) =>
  work.then(
    () => "done",
    (error: unknown) => (error instanceof ObjectStoreError ? error.kind : error),
  );

describe.each(["s3", "azure", "gcs", "folder"])("%s", (provider) => {
  const bucket = `contract-${provider}`;
  let store: ObjectStore;

  beforeAll(async () => {
    store = await (stores[provider] as (bucket: string) => Promise<ObjectStore>)(bucket);
    expect(await store.checkBucket()).toBe("missing");
    expect(await kindOf(listAll(store, ""))).toBe("bucketMissing");
    expect(await kindOf(store.get("x"))).toBe("bucketMissing");
    expect(await store.checkBucket({ create: true })).toBe("created");
    expect(await store.checkBucket({ create: true })).toBe("present");
  });
  afterAll(() => store?.close());

  test("what is put comes back, with its checksum", async () => {
    const body = randomBytes(300_000);
    const result = await store.put("a/b c+d/ü", [body.subarray(0, 1000), body.subarray(1000)]);
    expect(result).toEqual({ size: 300_000, checksum: `md5:${createHash("md5").update(body).digest("hex")}` });
    expect((await bytesOf(store, "a/b c+d/ü")).equals(body)).toBe(true);
    expect(await store.head("a/b c+d/ü")).toMatchObject({ key: "a/b c+d/ü", size: 300_000 });
  });

  test("an empty object is an object", async () => {
    await store.put("empty", []);
    expect(await store.head("empty")).toMatchObject({ size: 0 });
    expect((await bytesOf(store, "empty")).length).toBe(0);
  });

  test("an object that is there is replaced only without the condition", async () => {
    await store.put("once", [Buffer.from("first")], { ifAbsent: true });
    expect(await kindOf(store.put("once", [Buffer.from("second")], { ifAbsent: true }))).toBe("conflict");
    expect((await bytesOf(store, "once")).toString()).toBe("first");
    await store.put("once", [Buffer.from("third")]);
    expect((await bytesOf(store, "once")).toString()).toBe("third");
    expect(store.conditionalCreate).toBe(true);
  });

  test("of ten who create the same object one wins", async () => {
    const tries = Array.from({ length: 10 }, (_, at) =>
      kindOf(store.put("race", [Buffer.from(`${at}`)], { ifAbsent: true })),
    );
    const results = await Promise.all(tries);
    expect(results.filter((result) => result === "done")).toHaveLength(1);
    expect(results.filter((result) => result === "conflict")).toHaveLength(9);
  });

  test.each([0, 1, 5 * mib - 1, 5 * mib, 5 * mib + 1, 13 * mib])("a stream of %i bytes comes back", async (size) => {
    const body = randomBytes(size);
    const result = await store.putStream(`stream-${size}`, streamOf(body, 700_000), {
      partBytes: 5 * mib,
      ifAbsent: true,
    });
    expect(result.size).toBe(size);
    expect((await bytesOf(store, `stream-${size}`)).equals(body)).toBe(true);
    const again = store.putStream(`stream-${size}`, streamOf(body, 700_000), { partBytes: 5 * mib, ifAbsent: true });
    expect(await kindOf(again)).toBe("conflict");
  });

  test("a source that fails leaves nothing behind", async () => {
    async function* failing() {
      yield randomBytes(12 * mib);
      throw new Error("the disk is gone");
    }
    await expect(store.putStream("broken", failing(), { partBytes: 5 * mib })).rejects.toThrow("the disk is gone");
    expect(await store.head("broken")).toBeUndefined();
    expect(await store.abortStaleUploads("", Date.now() + 60_000)).toBe(0);
    if (provider === "folder") {
      expect((await readdir(join(folder, bucket))).filter((name) => name.includes("part"))).toEqual([]);
    }
  });

  test("what is not there is certainly not there", async () => {
    expect(await store.head("none")).toBeUndefined();
    expect(await kindOf(store.get("none"))).toBe("notFound");
    await store.remove(["none", "neither"]);
  });

  test("listings come in pages, in order, with prefixes", async () => {
    const keys = Array.from({ length: 25 }, (_, at) => `list/${at % 3}/k${String(at).padStart(2, "0")}`);
    for (const key of keys) await store.put(key, [Buffer.from(key)]);
    await store.put("list-other", [Buffer.from("x")]);
    const pages: string[][] = [];
    for await (const page of store.list("list/", { pageSize: 10 })) pages.push(page.objects.map(({ key }) => key));
    expect(pages.flat()).toEqual([...keys].sort());
    expect(pages.length).toBeGreaterThan(1);
    expect((await listAll(store, "list/1/k1")).objects.map(({ key }) => key)).toEqual([
      "list/1/k10",
      "list/1/k13",
      "list/1/k16",
      "list/1/k19",
    ]);
    const grouped = await listAll(store, "list/", { delimiter: "/" });
    expect(grouped).toEqual({ objects: [], prefixes: ["list/0/", "list/1/", "list/2/"] });
    expect((await listAll(store, "list", { delimiter: "/" })).objects.map(({ key }) => key)).toEqual(["list-other"]);
    const rest = await listAll(store, "list/2/", { startAfter: "list/2/k17" });
    expect(rest.objects.map(({ key }) => key)).toEqual(["list/2/k20", "list/2/k23"]);
    await store.remove(keys);
    expect(await listAll(store, "list/")).toMatchObject({ objects: [] });
  });

  test("a body that is not read is given back", async () => {
    await store.put("large", [randomBytes(9 * mib)]);
    for (let round = 0; round < 40; round++) (await store.get("large")).cancel();
    expect(await store.head("large")).toMatchObject({ size: 9 * mib });
  });
});

describe("s3 alone", () => {
  const bucket = "contract-alone";
  let direct: ObjectStore;

  beforeAll(async () => {
    direct = await createS3Store(server.options(bucket));
    await direct.checkBucket({ create: true });
  });
  afterAll(() => direct?.close());

  const faulty = (options = {}) =>
    createS3Store({
      ...server.options(bucket),
      endpoint: proxy.endpoint,
      maxAttempts: 1,
      readTimeoutMs: 500,
      ...options,
    });

  test("own metadata comes back with the head and the body", async () => {
    await direct.put("meta", [Buffer.from("x")], {
      metadata: { "cnpg-ts-sha256": "ab" },
      tags: { team: "a b", "k/1": "v=2" },
    });
    expect((await direct.head("meta"))?.metadata).toEqual({ "cnpg-ts-sha256": "ab" });
    expect((await direct.get("meta")).info.metadata).toEqual({ "cnpg-ts-sha256": "ab" });
  });

  test("wrong credentials are denied, and say nothing of the object", async () => {
    const credentials = { accessKeyId: "nobody", secretAccessKey: "nothing" };
    const stranger = await createS3Store({ ...server.options(bucket), credentials });
    expect(await kindOf(stranger.head("meta"))).toBe("denied");
    expect(await kindOf(stranger.get("none"))).toBe("denied");
    expect(await kindOf(stranger.put("x", [Buffer.from("x")]))).toBe("denied");
    expect(await kindOf(listAll(stranger, ""))).toBe("denied");
    stranger.close();
  });

  test.each([
    [403, "AccessDenied", "denied"],
    [403, undefined, "denied"],
    [404, "NoSuchKey", "notFound"],
    [404, "NoSuchBucket", "bucketMissing"],
    [404, undefined, "unavailable"],
    [500, "InternalError", "unavailable"],
    [503, "SlowDown", "unavailable"],
    [503, undefined, "unavailable"],
    [502, undefined, "unavailable"],
    [429, undefined, "unavailable"],
    [400, "BadDigest", "corrupt"],
    [400, "ExpiredToken", "denied"],
    [400, "MalformedXML", "invalid"],
    [301, "PermanentRedirect", "invalid"],
  ])("status %i with code %s is %s", async (status, code, kind) => {
    proxy.fault = answerWith(status, code);
    const store = await faulty();
    const failed = store.get("dir/key");
    await expect(failed).rejects.toMatchObject({
      kind,
      httpStatus: status,
      message: expect.stringMatching(new RegExp(`^GET s3://${bucket}/dir/key: HTTP ${status}`)),
    });
    store.close();
  });

  test("a server without conditions is asked without", async () => {
    proxy.fault = (incoming, outgoing) =>
      incoming.headers["if-none-match"] === undefined ? "pass" : answerWith(501, "NotImplemented")(incoming, outgoing);
    const store = await faulty();
    await store.put("plain", [Buffer.from("x")], { ifAbsent: true });
    expect(store.conditionalCreate).toBe(false);
    expect((await bytesOf(direct, "plain")).toString()).toBe("x");
    store.close();
  });

  test("an answer that names no checksum is proven by reading the object again", async () => {
    let changed: string | undefined;
    proxy.fault = (incoming, outgoing) => {
      const write = outgoing.writeHead.bind(outgoing) as (status: number, headers: object) => ServerResponseLike;
      outgoing.writeHead = ((status: number, headers: Record<string, string>) =>
        write(
          status,
          incoming.method === "PUT" ? { ...headers, etag: '"kms-etag"' } : headers,
        )) as typeof outgoing.writeHead;
      if (incoming.method === "GET" && changed !== undefined) {
        outgoing.writeHead = write as typeof outgoing.writeHead;
        write(200, { "content-length": String(changed.length) });
        outgoing.end(changed);
        return "answered";
      }
      return "pass";
    };
    const store = await faulty();
    await store.put("proven", [Buffer.from("right")]);
    changed = "wrong";
    expect(await kindOf(store.put("proven", [Buffer.from("right")]))).toBe("corrupt");
    store.close();
  });

  test("half a body is an error, not a short object", async () => {
    await direct.put("halved", [randomBytes(300_000)]);
    proxy.fault = (_incoming, outgoing) => {
      outgoing.writeHead(200, { "content-length": "300000" });
      outgoing.write(randomBytes(100_000));
      setTimeout(() => outgoing.destroy(), 50);
      return "answered";
    };
    const store = await faulty();
    expect(await kindOf(bytesOf(store, "halved"))).toBe("unavailable");
    store.close();
  });

  test("a body that stops flowing ends after the time limit", async () => {
    proxy.fault = (_incoming, outgoing) => {
      outgoing.writeHead(200, { "content-length": "300000" });
      outgoing.write(randomBytes(1000));
      return "answered";
    };
    const store = await faulty();
    expect(await kindOf(bytesOf(store, "halved"))).toBe("unavailable");
    store.close();
  });

  test("a server that does not answer ends after the time limit, and an abort at once", async () => {
    proxy.fault = () => "answered";
    const store = await faulty();
    expect(await kindOf(store.head("x"))).toBe("unavailable");
    const controller = new AbortController();
    const aborted = store.get("x", { signal: controller.signal });
    controller.abort(new Error("no longer wanted"));
    await expect(aborted).rejects.toThrow("no longer wanted");
    store.close();
  });

  test("a connection cut after the upload took effect is unavailable, and the object is there", async () => {
    proxy.fault = () => "passThenCut";
    const store = await faulty();
    expect(await kindOf(store.put("cut", [Buffer.from("x")], { ifAbsent: true }))).toBe("unavailable");
    expect((await bytesOf(direct, "cut")).toString()).toBe("x");
    store.close();
  });

  test("the client's own second try of a lost answer meets its object as a conflict", async () => {
    let first = true;
    proxy.fault = (incoming) => {
      const wish = first && incoming.method === "PUT" ? "passThenCut" : "pass";
      first = false;
      return wish;
    };
    const store = await faulty({ maxAttempts: 3 });
    expect(await kindOf(store.put("retried", [Buffer.from("x")], { ifAbsent: true }))).toBe("conflict");
    store.close();
  });

  test("parts of an upload whose process died are found and ended", async () => {
    let blocked = false;
    proxy.fault = (incoming, outgoing) => {
      if (incoming.method === "DELETE" || (incoming.method === "POST" && incoming.url?.includes("uploadId"))) {
        blocked = true;
        return answerWith(500, "InternalError")(incoming, outgoing);
      }
      return "pass";
    };
    const store = await faulty({ readTimeoutMs: 10_000 });
    const body = randomBytes(11 * mib);
    expect(await kindOf(store.putStream("stale/x", streamOf(body, mib), { partBytes: 5 * mib }))).toBe("unavailable");
    expect(blocked).toBe(true);
    expect(await direct.abortStaleUploads("stale/", 0)).toBe(0);
    expect(await direct.abortStaleUploads("stale/", Date.now() + 60_000)).toBe(1);
    expect(await direct.head("stale/x")).toBeUndefined();
    store.close();
  });

  test("a store whose batches of deletes are refused is asked one by one", async () => {
    for (const key of ["del/1", "del/2"]) await direct.put(key, [Buffer.from(key)]);
    proxy.fault = (incoming, outgoing) =>
      incoming.method === "POST" ? answerWith(400, "MissingContentMD5")(incoming, outgoing) : "pass";
    const store = await faulty();
    await store.remove(["del/1", "del/2"]);
    expect(await listAll(direct, "del/")).toMatchObject({ objects: [] });
    store.close();
  });

  test("an endpoint with a CA of its own is trusted by that CA only, and bodies need no hash of their own there", async () => {
    const authority = await createTestAuthority();
    const secure = await startFaultyS3(server.port, await authority.issue("localhost"));
    const hashes = new Set<unknown>();
    secure.fault = (incoming) => {
      if (incoming.method === "PUT") hashes.add(incoming.headers["x-amz-content-sha256"]);
      return "pass";
    };
    const options = { ...server.options(bucket), endpoint: secure.endpoint, maxAttempts: 1 };
    const trusting = await createS3Store({ ...options, ca: authority.ca });
    await trusting.put("over-tls", [Buffer.from("x")], { ifAbsent: true });
    await trusting.putStream("parts-over-tls", streamOf(randomBytes(11 * mib), mib), { partBytes: 5 * mib });
    expect((await bytesOf(trusting, "over-tls")).toString()).toBe("x");
    expect([...hashes]).toEqual(["UNSIGNED-PAYLOAD"]);
    const strict = await createS3Store(options);
    expect(await kindOf(strict.head("over-tls"))).toBe("unavailable");
    for (const store of [trusting, strict]) store.close();
    await secure.stop();
    await authority.remove();
  });

  test.each(["path", "virtual"] as const)("addressing %s is used for every call", async (addressing) => {
    // Not every resolver knows names below localhost.
    const plain = dns.lookup as (name: string, ...rest: unknown[]) => void;
    const known = (name: string, ...rest: unknown[]) =>
      plain(name.endsWith(".localhost") ? "localhost" : name, ...rest);
    vi.spyOn(dns, "lookup").mockImplementation(known as typeof dns.lookup);
    const hosts = new Set<string | undefined>();
    const paths: (string | undefined)[] = [];
    proxy.fault = (incoming, outgoing) => {
      hosts.add(incoming.headers.host?.replace(/:.*/, ""));
      paths.push(incoming.url);
      return answerWith(503, "SlowDown")(incoming, outgoing);
    };
    const store = await faulty({ addressing, endpoint: proxy.endpoint.replace("127.0.0.1", "localhost") });
    const calls = [
      () => listAll(store, "x"),
      () => store.get("x"),
      () => store.put("x", []),
      () => store.remove(["x"]),
      () => store.checkBucket(),
    ];
    for (const call of calls) expect(await kindOf(call())).toBe("unavailable");
    expect(paths).toHaveLength(5);
    expect(paths.filter((path) => path?.startsWith(`/${bucket}`))).toHaveLength(addressing === "path" ? 5 : 0);
    expect([...hosts]).toEqual([addressing === "path" ? "localhost" : `${bucket}.localhost`]);
    store.close();
    vi.restoreAllMocks();
  });
});

type ServerResponseLike = { end(): unknown };
