import { type ObjectPage, type ObjectStore, ObjectStoreError } from "../../ports/object-store.ts";
import { formatBatch, removeByBatches } from "../batch-removal.ts";
import { join } from "../parts.ts";
import type { GcsOptions } from "./gcs-options.ts";
import { type GcsObject, GcsSession, toHead } from "./gcs-session.ts";
import { putObject, putObjectStream } from "./gcs-upload.ts";

interface Listing {
  items?: GcsObject[];
  prefixes?: string[];
  nextPageToken?: string;
}

/** Connects to a bucket of Google Cloud Storage, or of an emulator. */
export function createGcsStore(options: GcsOptions): ObjectStore {
  const session = new GcsSession(options);
  return {
    location: session.location,
    conditionalCreate: true,
    put: (key, body, put = {}) => clarified(session, () => putObject(session, key, join(body), put)),
    putStream: (key, body, put = {}) => clarified(session, () => putObjectStream(session, key, body, put)),
    get: (key, { from, signal } = {}) => session.get(key, signal, from),
    head: (key, { signal } = {}) => session.head(key, signal),
    list: (prefix, list = {}) => listPages(session, prefix, list),
    remove: (keys, { signal } = {}) =>
      removeByBatches(keys, {
        batchSize: 100,
        sendBatch: (batch) => sendRemovals(session, batch, signal),
        removeOne: (key) => removeOne(session, key, signal),
      }),
    async checkBucket({ create = false, signal } = {}) {
      try {
        for await (const _page of listPages(session, "", { pageSize: 1, ...(signal ? { signal } : {}) })) break;
        return "present";
      } catch (error) {
        if (!(error instanceof ObjectStoreError) || error.kind !== "bucketMissing") throw error;
      }
      if (!create) return "missing";
      await makeBucket(session, signal);
      return "created";
    },
    // An upload without its end is no object; the service itself drops it after a week.
    abortStaleUploads: async () => 0,
    close: () => session.rest.close(),
  };
}

async function* listPages(
  session: GcsSession,
  prefix: string,
  options: Parameters<ObjectStore["list"]>[1] & object,
): AsyncGenerator<ObjectPage> {
  const { delimiter, startAfter, pageSize, signal } = options;
  let token = "";
  do {
    const call = {
      operation: "LIST",
      method: "GET",
      key: prefix,
      path: `${session.bucketPath}/o`,
      query: {
        prefix,
        ...(delimiter === undefined ? {} : { delimiter }),
        ...(startAfter === undefined ? {} : { startOffset: startAfter }),
        ...(pageSize === undefined ? {} : { maxResults: String(pageSize) }),
        ...(token === "" ? {} : { pageToken: token }),
      },
      signal,
    } as const;
    const page = await session.sendForJson<Listing>(call).catch(async (error: unknown) => {
      throw await session.clarify(error, "", signal);
    });
    // The service begins at that name, not after it.
    const after = (name: string) => startAfter === undefined || name > startAfter;
    yield {
      objects: (page.items ?? [])
        .map((item) => toHead(item.name ?? "", item))
        .flatMap(({ metadata: _, ...info }) => (after(info.key) ? [info] : [])),
      prefixes: (page.prefixes ?? []).filter(after),
    };
    token = page.nextPageToken ?? "";
  } while (token !== "");
}

async function sendRemovals(
  session: GcsSession,
  keys: readonly string[],
  signal: AbortSignal | undefined,
): Promise<string> {
  const { contentType, body } = formatBatch(keys.map((key) => ({ path: session.objectPath(key) })));
  const call = { operation: "DELETE BATCH", method: "POST", key: "", path: "/batch/storage/v1", signal } as const;
  return session.sendForText({ ...call, headers: { "content-type": contentType }, body });
}

async function removeOne(session: GcsSession, key: string, signal: AbortSignal | undefined): Promise<void> {
  const call = { operation: "DELETE", method: "DELETE", key, path: session.objectPath(key), signal } as const;
  try {
    await session.sendForHead(call);
  } catch (error) {
    throw await session.clarify(error, key, signal);
  }
}

async function makeBucket(session: GcsSession, signal: AbortSignal | undefined): Promise<void> {
  const project = (await session.options.project?.()) ?? "";
  const call = { operation: "CREATE BUCKET", method: "POST", key: "", path: "/storage/v1/b", signal } as const;
  await session.sendForHead({
    ...call,
    query: { project },
    headers: { "content-type": "application/json; charset=UTF-8" },
    body: Buffer.from(JSON.stringify({ name: session.options.bucket })),
  });
}

/** A write that meets a 404 can only lack its bucket. */
async function clarified<T>(session: GcsSession, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw await session.clarify(error, "");
  }
}
