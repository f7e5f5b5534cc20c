import type * as Sdk from "@aws-sdk/client-s3";
import { type ObjectInfo, type ObjectPage, type ObjectStore, ObjectStoreError } from "../ports/object-store.ts";
import { join } from "./parts.ts";
import { toStoreError } from "./s3-errors.ts";
import { compileS3Options, type S3Options } from "./s3-options.ts";
import { S3Session } from "./s3-session.ts";
import { putObject, putObjectStream } from "./s3-upload.ts";

/** Largest number of keys that one request may remove. */
const deleteBatch = 1000;

/** Connects to a bucket of S3 or of a compatible service. The SDK is loaded here, not before. */
export async function createS3Store(options: S3Options): Promise<ObjectStore> {
  const sdk = await import("@aws-sdk/client-s3");
  const compiled = compileS3Options(options);
  const client = new sdk.S3Client(compiled.client);
  const session = new S3Session(sdk, client, options);
  let conditional: boolean | undefined;

  /** Runs a put, without the condition when the store does not know it. */
  async function conditionally<T>(wanted: boolean, run: (ifAbsent: boolean) => Promise<T>): Promise<T> {
    if (!wanted || conditional === false) return run(false);
    try {
      return await run(true);
    } catch (error) {
      if (error instanceof ObjectStoreError && error.kind === "conflict") conditional = true;
      if (!(error instanceof ObjectStoreError) || error.httpStatus !== 501) throw error;
      conditional = false;
      return run(false);
    }
  }

  return {
    location: session.location,
    get conditionalCreate() {
      return conditional;
    },
    put: (key, body, put = {}) =>
      conditionally(put.ifAbsent ?? false, (ifAbsent) => putObject(session, key, join(body), { ...put, ifAbsent })),
    putStream: (key, body, put = {}) =>
      // A stream cannot be sent twice, so the condition is only tried where the store has not refused it before.
      putObjectStream(session, key, body, { ...put, ifAbsent: (put.ifAbsent ?? false) && conditional !== false }),
    get: (key, { from, signal } = {}) => session.get(key, signal, from),
    head: (key, { signal } = {}) => session.head(key, signal),
    list: (prefix, list = {}) => listPages(session, prefix, list),
    async remove(keys, { signal } = {}) {
      for (let at = 0; at < keys.length; at += deleteBatch) {
        await removeBatch(session, keys.slice(at, at + deleteBatch), signal);
      }
    },
    async checkBucket({ create = false, signal } = {}) {
      if (await bucketExists(session, signal)) return "present";
      if (!create) return "missing";
      await session.send("CREATE BUCKET", "", new sdk.CreateBucketCommand({ Bucket: options.bucket }), signal);
      return "created";
    },
    abortStaleUploads: (prefix, olderThanMs) => abortUploads(session, prefix, olderThanMs),
    close() {
      client.destroy();
      compiled.close();
    },
  };
}

async function* listPages(
  session: S3Session,
  prefix: string,
  options: Parameters<ObjectStore["list"]>[1] & object,
): AsyncGenerator<ObjectPage> {
  let token: string | undefined;
  do {
    const answer: Sdk.ListObjectsV2CommandOutput = await session.send(
      "LIST",
      prefix,
      new session.sdk.ListObjectsV2Command({
        Bucket: session.bucket,
        Prefix: prefix,
        ...(options.delimiter === undefined ? {} : { Delimiter: options.delimiter }),
        ...(options.startAfter === undefined || token !== undefined ? {} : { StartAfter: options.startAfter }),
        ...(options.pageSize === undefined ? {} : { MaxKeys: options.pageSize }),
        ...(token === undefined ? {} : { ContinuationToken: token }),
      }),
      options.signal,
    );
    const objects = (answer.Contents ?? []).map(toInfo);
    const prefixes = (answer.CommonPrefixes ?? []).flatMap((entry) => (entry.Prefix ? [entry.Prefix] : []));
    yield { objects, prefixes };
    token = answer.IsTruncated ? answer.NextContinuationToken : undefined;
    if (answer.IsTruncated && token === undefined) {
      throw new ObjectStoreError(`LIST ${session.location}/${prefix}: a cut listing without a way to go on`, {
        kind: "unavailable",
        operation: "LIST",
        key: prefix,
      });
    }
  } while (token !== undefined);
}

function toInfo(entry: Sdk._Object): ObjectInfo {
  return { key: entry.Key ?? "", size: entry.Size ?? 0, modifiedMs: entry.LastModified?.getTime() };
}

async function removeBatch(session: S3Session, keys: readonly string[], signal?: AbortSignal): Promise<void> {
  if (keys.length === 0) return;
  const { sdk, bucket } = session;
  const input = { Bucket: bucket, Delete: { Objects: keys.map((Key) => ({ Key })), Quiet: true } };
  let answer: Sdk.DeleteObjectsCommandOutput;
  try {
    answer = await session.send("DELETE", keys[0] ?? "", new sdk.DeleteObjectsCommand(input), signal);
  } catch (error) {
    // Some services know no batches, or want another digest than the SDK's.
    if (!(error instanceof ObjectStoreError) || error.kind !== "invalid") throw error;
    for (const Key of keys) {
      await session.send("DELETE", Key, new sdk.DeleteObjectCommand({ Bucket: bucket, Key }), signal);
    }
    return;
  }
  const [failed] = (answer.Errors ?? []).filter((entry) => entry.Code !== "NoSuchKey");
  if (!failed) return;
  const cause = Object.assign(new Error(failed.Message ?? "not deleted"), { name: failed.Code ?? "Error" });
  throw toStoreError(cause, "DELETE", session.location, failed.Key ?? "", signal);
}

async function bucketExists(session: S3Session, signal?: AbortSignal): Promise<boolean> {
  try {
    const command = new session.sdk.ListObjectsV2Command({ Bucket: session.bucket, MaxKeys: 1 });
    await session.send("LIST", "", command, signal);
    return true;
  } catch (error) {
    if (error instanceof ObjectStoreError && error.kind === "bucketMissing") return false;
    throw error;
  }
}

async function abortUploads(session: S3Session, prefix: string, olderThanMs: number): Promise<number> {
  const { sdk, bucket } = session;
  let aborted = 0;
  let markers: { KeyMarker?: string; UploadIdMarker?: string } = {};
  for (;;) {
    const command = new sdk.ListMultipartUploadsCommand({ Bucket: bucket, Prefix: prefix, ...markers });
    const answer: Sdk.ListMultipartUploadsCommandOutput = await session.send("LIST UPLOADS", prefix, command);
    for (const { Key = "", UploadId, Initiated } of answer.Uploads ?? []) {
      if (Initiated === undefined || Initiated.getTime() >= olderThanMs) continue;
      await session.send("ABORT UPLOAD", Key, new sdk.AbortMultipartUploadCommand({ Bucket: bucket, Key, UploadId }));
      aborted += 1;
    }
    if (!answer.IsTruncated || answer.NextKeyMarker === undefined) return aborted;
    markers = {
      KeyMarker: answer.NextKeyMarker,
      ...(answer.NextUploadIdMarker === undefined ? {} : { UploadIdMarker: answer.NextUploadIdMarker }),
    };
  }
}
