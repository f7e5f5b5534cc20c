import { createHash, randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { ObjectStoreError, type PutOptions, type PutResult, type PutStreamOptions } from "../../ports/object-store.ts";
import { cutStream } from "../send-parts.ts";
import type { GcsObject, GcsSession } from "./gcs-session.ts";

/** Every piece of an upload but the last is a multiple of this. */
const unitBytes = 256 * 1024;
/** Tries in a row of one piece, without a byte in between, after which the upload is given up. */
const mostTries = 5;

/** Uploads bytes in one request, which the service checks against their MD5. */
export async function putObject(
  session: GcsSession,
  key: string,
  body: Uint8Array,
  options: PutOptions,
): Promise<PutResult> {
  const md5 = createHash("md5").update(body).digest();
  const boundary = `part-${randomBytes(16).toString("hex")}`;
  const facts = { ...session.describe(key, options), md5Hash: md5.toString("base64") };
  const begin = `--${boundary}\r\ncontent-type: application/json; charset=UTF-8\r\n\r\n${JSON.stringify(facts)}\r\n--${boundary}\r\ncontent-type: application/octet-stream\r\n\r\n`;
  const answer = await session.sendForJson<GcsObject>({
    operation: "PUT",
    method: "POST",
    key,
    path: session.uploadPath,
    query: { uploadType: "multipart", ...session.makeQuery(options) },
    headers: { "content-type": `multipart/related; boundary=${boundary}` },
    body: Buffer.concat([Buffer.from(begin), body, Buffer.from(`\r\n--${boundary}--\r\n`)]),
    signal: options.signal,
  });
  await confirm(session, key, { md5, size: body.length }, answer, options.signal);
  return { size: body.length, checksum: `md5:${md5.toString("hex")}` };
}

/**
 * Uploads a stream of unknown length piece by piece, in order, as the service wants it; a piece whose answer is lost goes on
 * where the service says it stands. One that fits into a piece goes in one request.
 */
export async function putObjectStream(
  session: GcsSession,
  key: string,
  source: AsyncIterable<Uint8Array>,
  options: PutStreamOptions,
): Promise<PutResult> {
  const partBytes = Math.max(1, Math.ceil((options.partBytes ?? 8 * 1024 * 1024) / unitBytes)) * unitBytes;
  const cut = await cutStream(source, partBytes);
  if ("whole" in cut) return putObject(session, key, cut.whole, options);
  const upload = await ResumableUpload.begin(session, key, options);
  const hash = createHash("md5");
  try {
    let part = await cut.parts.next();
    while (part) {
      const next = await cut.parts.next();
      hash.update(part);
      if (next) await upload.send(part);
      else {
        const md5 = hash.digest();
        const size = upload.position + part.length;
        await confirm(session, key, { md5, size }, await upload.finish(part, md5), options.signal);
        return { size, checksum: `md5:${md5.toString("hex")}` };
      }
      cut.parts.give(part);
      part = next;
    }
    throw session.rest.fail({ operation: "PUT", key }, "invalid", "the stream ended without its last piece");
  } catch (error) {
    await cut.parts.close();
    await upload.abort();
    throw error;
  }
}

/** An upload whose address the service named; it lives a week. */
class ResumableUpload {
  position = 0;
  readonly #session: GcsSession;
  readonly #key: string;
  readonly #address: URL;
  readonly #signal: AbortSignal | undefined;

  private constructor(session: GcsSession, key: string, address: URL, signal: AbortSignal | undefined) {
    this.#session = session;
    this.#key = key;
    this.#address = address;
    this.#signal = signal;
  }

  static async begin(session: GcsSession, key: string, options: PutOptions): Promise<ResumableUpload> {
    const call = { operation: "CREATE UPLOAD", method: "POST", key, path: session.uploadPath } as const;
    const answer = await session.sendForHead({
      ...call,
      query: { uploadType: "resumable", ...session.makeQuery(options) },
      headers: { "content-type": "application/json; charset=UTF-8" },
      body: Buffer.from(JSON.stringify(session.describe(key, options))),
      signal: options.signal,
    });
    const address = URL.parse(answer.headers.location ?? "");
    if (address) return new ResumableUpload(session, key, address, options.signal);
    throw session.rest.fail(call, "unavailable", "the service named no address for the upload");
  }

  /** Sends a piece that others follow. */
  async send(part: Uint8Array): Promise<void> {
    const end = this.position + part.length;
    const done = await this.#sendFrom(part, "*");
    if (done) throw this.#fail("the service ended the upload early");
    if (this.position !== end) throw this.#fail(`the service stands at ${this.position} instead of ${end}`);
  }

  /** Sends the last piece; the object as the service holds it. */
  async finish(part: Uint8Array, md5: Buffer): Promise<GcsObject> {
    const size = this.position + part.length;
    const object = await this.#sendFrom(part, String(size), { "x-goog-hash": `md5=${md5.toString("base64")}` });
    if (!object) throw this.#fail(`the service wants more than the ${size} bytes that there are`);
    return object;
  }

  async abort(): Promise<void> {
    const call = { operation: "ABORT UPLOAD", method: "DELETE", key: this.#key, accept: [404, 410, 499] } as const;
    // The upload's own failure is what the caller must hear.
    await this.#session.sendTo(this.#address, { ...call, attempts: 1 }).catch(() => undefined);
  }

  /** Sends a piece from where the service stands until it has all of it; the object when that ended the upload. */
  async #sendFrom(part: Uint8Array, total: string, headers = {}): Promise<GcsObject | undefined> {
    const begin = this.position;
    let tries = 0;
    while (this.position < begin + part.length) {
      const before = this.position;
      const rest = part.subarray(before - begin);
      const range = `bytes ${before}-${before + rest.length - 1}/${total}`;
      try {
        const object = await this.#exchange({ "content-range": range, ...headers }, rest);
        if (object) return object;
      } catch (error) {
        if (!(error instanceof ObjectStoreError) || error.kind !== "unavailable") throw error;
        if (error.httpStatus === 404 || error.httpStatus === 410 || tries >= mostTries - 1) throw error;
        await sleep(100 * 2 ** tries, undefined, this.#signal ? { signal: this.#signal } : {}).catch(() => undefined);
        this.#signal?.throwIfAborted();
        const object = await this.#exchange({ "content-range": `bytes */${total}` }, new Uint8Array());
        if (object) return object;
      }
      tries = this.position > before ? 0 : tries + 1;
      if (tries >= mostTries) throw this.#fail(`the service takes no more than ${this.position} bytes`);
    }
    return undefined;
  }

  async #exchange(headers: Readonly<Record<string, string>>, body: Uint8Array): Promise<GcsObject | undefined> {
    const call = { operation: "PUT PART", method: "PUT", key: this.#key, signal: this.#signal } as const;
    const { answer, text } = await this.#session.sendTo(this.#address, {
      ...call,
      headers,
      body,
      accept: [308],
      // Sent again it would be refused: the service may have taken some of it.
      attempts: body.length === 0 ? 3 : 1,
    });
    if (answer.status !== 308) return this.#session.parse<GcsObject>(call, text);
    const range = /bytes=0-(\d+)/.exec(String(answer.headers.range ?? ""));
    this.position = range ? Number(range[1]) + 1 : 0;
    return undefined;
  }

  #fail(reason: string): ObjectStoreError {
    return this.#session.rest.fail({ operation: "PUT PART", key: this.#key }, "unavailable", reason);
  }
}

/** Compares what the service holds with what was sent; other bytes do not stay under the name. */
async function confirm(
  session: GcsSession,
  key: string,
  sent: { md5: Buffer; size: number },
  stored: GcsObject,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (stored.md5Hash === sent.md5.toString("base64") && stored.size === String(sent.size)) return;
  const { generation } = stored;
  if (generation !== undefined) {
    const call = { operation: "DELETE", method: "DELETE", key, path: session.objectPath(key) } as const;
    await session.sendForHead({ ...call, query: { ifGenerationMatch: generation }, signal }).catch(() => undefined);
  }
  throw session.rest.fail({ operation: "PUT", key }, "corrupt", "the store holds other bytes than were sent");
}
