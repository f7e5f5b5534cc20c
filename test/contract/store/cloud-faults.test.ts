// Azure's and Google's stores behind a line that fails: what S3 shows in object-store.test.ts, where these differ.
import { createHash, randomBytes } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { listAll, type ObjectStore, ObjectStoreError } from "../../../src/ports/object-store.ts";
import { createAzureStore } from "../../../src/store/azure/azure-store.ts";
import { createGcsStore } from "../../../src/store/gcs/gcs-store.ts";
import { type AzureServer, startAzureServer } from "../../support/azure-server.ts";
import { type GcsServer, startGcsServer } from "../../support/gcs-server.ts";
import { type FaultyS3, startFaultyS3 } from "./faulty-s3.ts";

const mib = 1 << 20;
let azure: AzureServer;
let gcs: GcsServer;
const lines: Record<string, FaultyS3> = {};

beforeAll(async () => {
  [azure, gcs] = await Promise.all([startAzureServer(), startGcsServer()]);
  lines["azure"] = await startFaultyS3(azure.port);
  lines["gcs"] = await startFaultyS3(gcs.port);
  // The first run on a machine builds and installs the servers.
}, 900_000);

afterAll(async () => {
  await Promise.all([azure?.stop(), gcs?.stop(), ...Object.values(lines).map((line) => line.stop())]);
});

interface Limits {
  maxAttempts?: number;
  readTimeoutMs?: number;
}

const direct: Record<string, () => ObjectStore> = {
  azure: () => createAzureStore(azure.options("faults")),
  gcs: () => createGcsStore(gcs.options("faults")),
};
const faulty: Record<string, (limits?: Limits) => ObjectStore> = {
  azure: (limits = {}) => {
    const endpoint = `${lines["azure"]?.endpoint}/${azure.account}`;
    return createAzureStore({ ...azure.options("faults"), endpoint, ...limits });
  },
  gcs: (limits = {}) => createGcsStore({ ...gcs.options("faults"), endpoint: lines["gcs"]?.endpoint, ...limits }),
};

async function bytesOf(store: ObjectStore, key: string, from = 0): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of (await store.get(key, { from })).chunks) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function* streamOf(bytes: Buffer): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 700_000) yield bytes.subarray(at, at + 700_000);
}

const kindOf = (work: Promise<unknown>) =>
  work.then(
    () => "done",
    (error: unknown) => (error instanceof ObjectStoreError ? error.kind : error),
  );

describe.each(["azure", "gcs"])("%s", (provider) => {
  let owner: ObjectStore;
  let line: FaultyS3;
  const open = (limits?: Limits) => (faulty[provider] as (limits?: Limits) => ObjectStore)(limits);

  beforeAll(async () => {
    owner = (direct[provider] as () => ObjectStore)();
    line = lines[provider] as FaultyS3;
    await owner.checkBucket({ create: true });
  });
  afterAll(() => owner?.close());
  afterEach(() => {
    line.fault = () => "pass";
  });

  test("own metadata comes back, tags beside it, for objects of one part and of several", async () => {
    const options = { metadata: { "cnpg-ts-sha256": "ab" }, tags: { team: "a b", "k/1": "v=2" } };
    await owner.put("meta", [Buffer.from("x")], options);
    await owner.putStream("meta-parts", streamOf(randomBytes(11 * mib)), { ...options, partBytes: 5 * mib });
    for (const key of ["meta", "meta-parts"]) {
      expect((await owner.head(key))?.metadata).toMatchObject({ "cnpg-ts-sha256": "ab" });
    }
    const body = await owner.get("meta");
    expect(body.info.metadata).toMatchObject({ "cnpg-ts-sha256": "ab" });
    body.cancel();
  });

  test("a download goes on from the middle", async () => {
    const bytes = randomBytes(100_000);
    await owner.put("middle", [bytes]);
    expect((await bytesOf(owner, "middle", 99_000)).equals(bytes.subarray(99_000))).toBe(true);
  });

  test("many objects go in one request, also where some are not there, and one by one where that is refused", async () => {
    const keys = ["many/1", "many/2 &+%/ü", "many/3"];
    const fill = async () => {
      for (const key of keys) await owner.put(key, [Buffer.from(key)]);
    };
    const asked: string[] = [];
    let takesBatches = true;
    line.fault = (incoming, outgoing) => {
      asked.push(incoming.method ?? "");
      if (takesBatches || incoming.method !== "POST") return "pass";
      outgoing.writeHead(400).end();
      return "answered";
    };
    const store = open();
    await fill();
    await store.remove(keys);
    expect(asked).toEqual(["POST"]);
    expect((await listAll(owner, "many/")).objects).toEqual([]);

    await fill();
    await store.remove([...keys, "many/none"]);
    expect((await listAll(owner, "many/")).objects).toEqual([]);

    takesBatches = false;
    await fill();
    asked.length = 0;
    await store.remove(keys);
    expect(asked.filter((method) => method === "DELETE")).toHaveLength(3);
    expect((await listAll(owner, "many/")).objects).toEqual([]);
    store.close();
  });

  test("a proxy's 404 says nothing of the object", async () => {
    line.fault = (_incoming, outgoing) => {
      outgoing.writeHead(404, { "content-type": "text/html" });
      outgoing.end("<html>a proxy</html>");
      return "answered";
    };
    const store = open({ maxAttempts: 1 });
    for (const call of [store.head("x"), store.get("x"), store.checkBucket(), store.put("x", [])]) {
      expect(await kindOf(call)).toBe("unavailable");
    }
    store.close();
  });

  test("a failure in passing is tried again, a lasting one is told after a bounded number of tries", async () => {
    let left = 2;
    line.fault = (_incoming, outgoing) => {
      if (left-- <= 0) return "pass";
      outgoing.writeHead(503);
      outgoing.end();
      return "answered";
    };
    const store = open();
    await store.put("again", [Buffer.from("x")]);
    left = 1000;
    line.seen.length = 0;
    await expect(store.head("again")).rejects.toMatchObject({ kind: "unavailable", httpStatus: 503 });
    expect(line.seen).toHaveLength(3);
    store.close();
  });

  test("an answer that was lost is met as a conflict by the second try", async () => {
    let first = true;
    line.fault = () => {
      const wish = first ? "passThenCut" : "pass";
      first = false;
      return wish;
    };
    const store = open();
    expect(await kindOf(store.put("lost", [Buffer.from("x")], { ifAbsent: true }))).toBe("conflict");
    expect((await bytesOf(owner, "lost")).toString()).toBe("x");
    store.close();
  });

  test("half a body, one that stops flowing, and an abort are failures, not short objects", async () => {
    const store = open({ maxAttempts: 1, readTimeoutMs: 500 });
    for (const cut of [true, false]) {
      line.fault = (_incoming, outgoing) => {
        outgoing.writeHead(200, { "content-length": "300000" });
        outgoing.write(randomBytes(100_000));
        if (cut) setTimeout(() => outgoing.destroy(), 50);
        return "answered";
      };
      expect(await kindOf(bytesOf(store, "halved"))).toBe("unavailable");
    }
    line.fault = () => "answered";
    expect(await kindOf(store.head("x"))).toBe("unavailable");
    const controller = new AbortController();
    const aborted = store.get("x", { signal: controller.signal });
    controller.abort(new Error("no longer wanted"));
    await expect(aborted).rejects.toThrow("no longer wanted");
    store.close();
  });

  test("bytes that arrive changed are corrupt", async () => {
    line.fault = (incoming) => {
      // As a broken network card would, behind all that the sender checks.
      if (incoming.method === "PUT" || incoming.method === "POST") {
        const pipe = incoming.pipe.bind(incoming);
        incoming.pipe = ((target: NodeJS.WritableStream) => {
          incoming.on("data", (chunk: Buffer) => {
            const at = chunk.indexOf("right");
            if (at >= 0) chunk.write("wrong", at);
          });
          return pipe(target);
        }) as typeof incoming.pipe;
      }
      return "pass";
    };
    const store = open({ maxAttempts: 1 });
    expect(await kindOf(store.put("changed", [Buffer.from("the right bytes")], { ifAbsent: true }))).toBe("corrupt");
    expect(await owner.head("changed")).toBeUndefined();
    store.close();
  });

  test("an upload in parts outlives a line that breaks in its middle", async () => {
    const body = randomBytes(16 * mib);
    let cuts = 0;
    line.fault = (incoming, outgoing) => {
      if (incoming.headers["content-range"] === "bytes */*") {
        // As the service documents it; this server would take the question for the end of the upload.
        outgoing.writeHead(308, { range: "bytes=0-10485759" });
        outgoing.end();
        return "answered";
      }
      const inMiddle =
        incoming.url?.includes("comp=block&") ||
        /bytes 5242880-\d+\/\*/.test(String(incoming.headers["content-range"]));
      if (!inMiddle || cuts > 0) return "pass";
      cuts += 1;
      return "passThenCut";
    };
    const store = open();
    const result = await store.putStream("broken-line", streamOf(body), { partBytes: 5 * mib, ifAbsent: true });
    expect(result.size).toBe(body.length);
    expect(cuts).toBe(1);
    const stored = await bytesOf(owner, "broken-line");
    expect(createHash("md5").update(stored).digest("hex")).toBe(createHash("md5").update(body).digest("hex"));
    store.close();
  });

  test("two who upload to one key at once never mix their parts", async () => {
    const bodies = [randomBytes(11 * mib), randomBytes(11 * mib)];
    const results = await Promise.all(
      bodies.map((body) => kindOf(owner.putStream("both", streamOf(body), { partBytes: 5 * mib, ifAbsent: true }))),
    );
    expect([...results].sort()).toEqual(["conflict", "done"]);
    const winner = bodies[results.indexOf("done")] as Buffer;
    expect((await bytesOf(owner, "both")).equals(winner)).toBe(true);
  });
});
