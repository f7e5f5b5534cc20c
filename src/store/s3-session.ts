import type { Readable } from "node:stream";
import type * as Sdk from "@aws-sdk/client-s3";
import { type ObjectBody, type ObjectHead, ObjectStoreError, type PutOptions } from "../ports/object-store.ts";
import { toStoreError } from "./s3-errors.ts";
import type { S3Options } from "./s3-options.ts";

type Command<I extends Sdk.ServiceInputTypes, O extends Sdk.ServiceOutputTypes> = Parameters<
  typeof Sdk.S3Client.prototype.send<I, O>
>[0];

/** One client for one bucket: sends commands, and gives every failure its kind. */
export class S3Session {
  readonly sdk: typeof Sdk;
  readonly client: Sdk.S3Client;
  readonly bucket: string;
  readonly location: string;
  readonly #options: S3Options;

  constructor(sdk: typeof Sdk, client: Sdk.S3Client, options: S3Options) {
    this.sdk = sdk;
    this.client = client;
    this.bucket = options.bucket;
    this.location = `s3://${options.bucket}`;
    this.#options = options;
  }

  async send<I extends Sdk.ServiceInputTypes, O extends Sdk.ServiceOutputTypes>(
    operation: string,
    key: string,
    command: Command<I, O>,
    signal?: AbortSignal,
  ): Promise<O> {
    signal?.throwIfAborted();
    try {
      return await this.client.send(command, signal === undefined ? {} : { abortSignal: signal });
    } catch (error) {
      throw toStoreError(error, operation, this.location, key, signal);
    }
  }

  /**
   * Names a body's hash in the signature, which the SDK would otherwise compute in the event loop. Under TLS the body needs
   * none: its MD5 is signed, and the channel is authentic.
   */
  async hashForSignature(body: Uint8Array): Promise<string> {
    if (this.#options.endpoint?.startsWith("http://") !== true) return "UNSIGNED-PAYLOAD";
    return Buffer.from(await globalThis.crypto.subtle.digest("SHA-256", body as Uint8Array<ArrayBuffer>)).toString(
      "hex",
    );
  }

  /** What every request that makes an object carries. */
  objectInput(key: string, options: PutOptions) {
    const { encryption, kmsKeyId } = this.#options;
    const tags = Object.entries(options.tags ?? {});
    return {
      Bucket: this.bucket,
      Key: key,
      ...(encryption === undefined ? {} : { ServerSideEncryption: encryption }),
      ...(kmsKeyId === undefined ? {} : { SSEKMSKeyId: kmsKeyId }),
      ...(tags.length === 0 ? {} : { Tagging: formatTags(tags) }),
      ...(options.metadata === undefined ? {} : { Metadata: { ...options.metadata } }),
    };
  }

  async get(key: string, signal?: AbortSignal, from = 0): Promise<ObjectBody> {
    const range = from > 0 ? { Range: `bytes=${from}-` } : {};
    const command = new this.sdk.GetObjectCommand({ Bucket: this.bucket, Key: key, ...range });
    const answer = await this.send<Sdk.GetObjectCommandInput, Sdk.GetObjectCommandOutput>("GET", key, command, signal);
    const info: ObjectHead = {
      key,
      size: answer.ContentLength ?? 0,
      modifiedMs: answer.LastModified?.getTime(),
      metadata: answer.Metadata ?? {},
    };
    const body = answer.Body as Readable;
    // A body that is cut before anybody listens must not end the process.
    body.on("error", () => undefined);
    return { info, chunks: this.#chunks(key, body, answer.ContentLength, signal), cancel: () => body.destroy() };
  }

  async head(key: string, signal?: AbortSignal): Promise<ObjectHead | undefined> {
    const command = new this.sdk.HeadObjectCommand({ Bucket: this.bucket, Key: key });
    try {
      const answer = await this.send<Sdk.HeadObjectCommandInput, Sdk.HeadObjectCommandOutput>(
        "HEAD",
        key,
        command,
        signal,
      );
      const { ContentLength: size = 0, LastModified, Metadata: metadata = {} } = answer;
      return { key, size, modifiedMs: LastModified?.getTime(), metadata };
    } catch (error) {
      if (!(error instanceof ObjectStoreError) || error.httpStatus !== 404) throw error;
      return this.#confirmAbsent(key, signal, error);
    }
  }

  /** The answer to a HEAD has no body, so a 404 may as well mean the bucket, or a proxy; a listing tells. */
  async #confirmAbsent(key: string, signal: AbortSignal | undefined, seen: ObjectStoreError): Promise<undefined> {
    const command = new this.sdk.ListObjectsV2Command({ Bucket: this.bucket, Prefix: key, MaxKeys: 1 });
    const answer = await this.send<Sdk.ListObjectsV2CommandInput, Sdk.ListObjectsV2CommandOutput>(
      "LIST",
      key,
      command,
      signal,
    );
    if (answer.Contents?.[0]?.Key === key) throw seen;
    return undefined;
  }

  async *#chunks(
    key: string,
    body: Readable,
    size: number | undefined,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<Uint8Array> {
    let seen = 0;
    try {
      for await (const chunk of body) {
        seen += (chunk as Uint8Array).length;
        yield chunk as Uint8Array;
      }
    } catch (error) {
      throw toStoreError(error, "GET", this.location, key, signal);
    } finally {
      body.destroy();
    }
    if (size !== undefined && seen !== size) {
      throw new ObjectStoreError(`GET ${this.location}/${key}: the answer ended after ${seen} of ${size} bytes`, {
        kind: "unavailable",
        operation: "GET",
        key,
      });
    }
  }
}

function formatTags(tags: readonly [string, string][]): string {
  return tags.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join("&");
}
