import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import type * as Sdk from "@aws-sdk/client-s3";
import { ObjectStoreError, type PutOptions, type PutResult, type PutStreamOptions } from "../ports/object-store.ts";
import type { S3Session } from "./s3-session.ts";
import { cutStream, sendPatiently } from "./send-parts.ts";

/** Smallest part a store must accept, save for the last one. */
const leastPartBytes = 5 * 1024 * 1024;

/** Uploads bytes in one request and proves that the store has them. */
export async function putObject(
  session: S3Session,
  key: string,
  body: Uint8Array,
  options: PutOptions,
): Promise<PutResult> {
  const { sdk } = session;
  // In the thread pool, while this thread computes the other one.
  const hashing = session.hashForSignature(body);
  const md5 = createHash("md5").update(body).digest();
  const input: Sdk.PutObjectCommandInput = {
    ...session.objectInput(key, options),
    Body: body,
    ContentLength: body.length,
    ContentMD5: md5.toString("base64"),
    ...(options.ifAbsent ? { IfNoneMatch: "*" } : {}),
  };
  const command = new sdk.PutObjectCommand(input);
  command.middlewareStack.add(presetHash(await hashing), presetStep);
  const answer = await session.send("PUT", key, command, options.signal);
  await confirm(session, key, body, md5, answer, options.signal);
  return { size: body.length, checksum: `md5:${md5.toString("hex")}` };
}

/** Uploads a stream of unknown length in parts; a stream that fits into one part goes in one request. */
export async function putObjectStream(
  session: S3Session,
  key: string,
  source: AsyncIterable<Uint8Array>,
  options: PutStreamOptions,
): Promise<PutResult> {
  const partBytes = Math.max(options.partBytes ?? 8 * 1024 * 1024, leastPartBytes);
  const cut = await cutStream(source, partBytes);
  if ("whole" in cut) return sendPatiently(() => putObject(session, key, cut.whole, options), options.again);

  const { sdk } = session;
  const target = session.objectInput(key, options);
  const created = await session.send(
    "CREATE UPLOAD",
    key,
    new sdk.CreateMultipartUploadCommand(target),
    options.signal,
  );
  const upload = new Multipart(session, key, created.UploadId ?? "", options.signal);
  try {
    await cut.parts.sendAll(options, (number, part) => upload.send(number, part));
    return await upload.complete(options.ifAbsent ?? false);
  } catch (error) {
    await cut.parts.close();
    await upload.abort();
    throw error;
  }
}

const presetStep = { step: "build", name: "presetHash" } as const;

/** Puts the hash where the signer looks for one before it computes its own. */
function presetHash(hash: string) {
  return <A extends { request: unknown }, R>(next: (args: A) => Promise<R>) =>
    (args: A): Promise<R> => {
      const { headers } = args.request as { headers: Record<string, string> };
      headers["x-amz-content-sha256"] = hash;
      return next(args);
    };
}

class Multipart {
  readonly #session: S3Session;
  readonly #key: string;
  readonly #id: string;
  readonly #signal: AbortSignal | undefined;
  readonly #etags: string[] = [];
  readonly #md5s: Buffer[] = [];
  #size = 0;

  constructor(session: S3Session, key: string, id: string, signal: AbortSignal | undefined) {
    this.#session = session;
    this.#key = key;
    this.#id = id;
    this.#signal = signal;
  }

  async send(number: number, body: Uint8Array): Promise<void> {
    const hashing = this.#session.hashForSignature(body);
    const md5 = createHash("md5").update(body).digest();
    const { sdk, bucket } = this.#session;
    const command = new sdk.UploadPartCommand({
      Bucket: bucket,
      Key: this.#key,
      UploadId: this.#id,
      PartNumber: number,
      Body: body,
      ContentLength: body.length,
      ContentMD5: md5.toString("base64"),
    });
    command.middlewareStack.add(presetHash(await hashing), presetStep);
    const answer = await this.#session.send(`PUT PART ${number}`, this.#key, command, this.#signal);
    if (!answer.ETag) throw this.#corrupt(`the store named no ETag for part ${number}`);
    this.#etags[number - 1] = answer.ETag;
    this.#md5s[number - 1] = md5;
    this.#size += body.length;
  }

  async complete(ifAbsent: boolean): Promise<PutResult> {
    const { sdk, bucket } = this.#session;
    const command = new sdk.CompleteMultipartUploadCommand({
      Bucket: bucket,
      Key: this.#key,
      UploadId: this.#id,
      MultipartUpload: { Parts: this.#etags.map((ETag, at) => ({ ETag, PartNumber: at + 1 })) },
      ...(ifAbsent ? { IfNoneMatch: "*" } : {}),
    });
    await this.#session.send("COMPLETE UPLOAD", this.#key, command, this.#signal);
    const whole = createHash("md5").update(Buffer.concat(this.#md5s)).digest("hex");
    // Every part was checked by its MD5; what is left to prove is that all of them were joined.
    const head = await this.#session.head(this.#key, this.#signal);
    if (head?.size !== this.#size) {
      throw this.#corrupt(`the joined object has ${head?.size ?? 0} bytes instead of ${this.#size}`);
    }
    return { size: this.#size, checksum: `md5:${whole}-${this.#etags.length}` };
  }

  async abort(): Promise<void> {
    const { sdk, bucket } = this.#session;
    const command = new sdk.AbortMultipartUploadCommand({ Bucket: bucket, Key: this.#key, UploadId: this.#id });
    // The upload's own failure is what the caller must hear; leftovers are swept later.
    await this.#session.send("ABORT UPLOAD", this.#key, command).catch(() => undefined);
  }

  #corrupt(reason: string): ObjectStoreError {
    return new ObjectStoreError(`COMPLETE UPLOAD ${this.#session.location}/${this.#key}: ${reason}`, {
      kind: "corrupt",
      operation: "COMPLETE UPLOAD",
      key: this.#key,
    });
  }
}

/**
 * Compares what the store says it holds with what was sent: its CRC or its MD5. A store that names neither (KMS, some
 * gateways) is asked for the bytes again.
 */
async function confirm(
  session: S3Session,
  key: string,
  body: Uint8Array,
  md5: Buffer,
  answer: { ETag?: string | undefined; ChecksumCRC32?: string | undefined },
  signal: AbortSignal | undefined,
): Promise<void> {
  if (answer.ChecksumCRC32 !== undefined && answer.ChecksumCRC32 === crcBase64(body)) return;
  if (answer.ETag?.replaceAll('"', "").toLowerCase() === md5.toString("hex")) return;
  const hash = createHash("md5");
  const stored = await session.get(key, signal);
  for await (const chunk of stored.chunks) hash.update(chunk);
  if (hash.digest().equals(md5)) return;
  throw new ObjectStoreError(`PUT ${session.location}/${key}: the store holds other bytes than were sent`, {
    kind: "corrupt",
    operation: "PUT",
    key,
  });
}

function crcBase64(body: Uint8Array): string {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(crc32(body));
  return bytes.toString("base64");
}
