import { type ObjectPage, type ObjectStore, ObjectStoreError } from "../../ports/object-store.ts";
import { formatBatch, removeByBatches } from "../batch-removal.ts";
import { join } from "../parts.ts";
import { parseListing } from "./azure-listing.ts";
import type { AzureOptions } from "./azure-options.ts";
import { AzureSession, headOf } from "./azure-session.ts";
import { putBlob, putBlobStream } from "./azure-upload.ts";

/** Connects to a container of Azure's blob storage, or of an emulator. */
export function createAzureStore(options: AzureOptions): ObjectStore {
  const session = new AzureSession(options);
  return {
    location: session.location,
    conditionalCreate: true,
    put: (key, body, put = {}) => putBlob(session, key, join(body), put),
    putStream: (key, body, put = {}) => putBlobStream(session, key, body, put),
    get: (key, { from, signal } = {}) => session.get(key, signal, from),
    async head(key, { signal } = {}) {
      try {
        return headOf(key, await session.sendForHead({ operation: "HEAD", method: "HEAD", key, signal }));
      } catch (error) {
        if (error instanceof ObjectStoreError && error.kind === "notFound") return undefined;
        throw error;
      }
    },
    list: (prefix, list = {}) => listPages(session, prefix, list),
    remove: (keys, { signal } = {}) =>
      removeByBatches(keys, {
        batchSize: 256,
        sendBatch: (batch) => sendRemovals(session, batch, signal),
        removeOne: (key) => session.sendForHead(removalOf(key, signal)),
      }),
    async checkBucket({ create = false, signal } = {}) {
      const query = { restype: "container", comp: "list", maxresults: "1" };
      try {
        await session.sendForHead({ operation: "LIST", method: "GET", key: "", query, signal });
        return "present";
      } catch (error) {
        if (!(error instanceof ObjectStoreError) || error.kind !== "bucketMissing") throw error;
      }
      if (!create) return "missing";
      const make = { operation: "CREATE CONTAINER", method: "PUT", key: "", query: { restype: "container" } } as const;
      await session.sendForHead({ ...make, signal });
      return "created";
    },
    // Blocks without a commit are no object; the service itself drops them after a week.
    abortStaleUploads: async () => 0,
    close: () => session.rest.close(),
  };
}

function removalOf(key: string, signal: AbortSignal | undefined) {
  const headers = { "x-ms-delete-snapshots": "include" };
  return { operation: "DELETE", method: "DELETE", key, headers, signal } as const;
}

async function sendRemovals(
  session: AzureSession,
  keys: readonly string[],
  signal: AbortSignal | undefined,
): Promise<string> {
  const parts = await Promise.all(keys.map((key) => session.toPart(removalOf(key, signal))));
  const { contentType, body } = formatBatch(parts);
  const query = { restype: "container", comp: "batch" };
  const headers = { "content-type": contentType };
  const call = { operation: "DELETE BATCH", method: "POST", key: "", query, headers, body, signal } as const;
  return (await session.sendForText(call)).text;
}

async function* listPages(
  session: AzureSession,
  prefix: string,
  options: Parameters<ObjectStore["list"]>[1] & object,
): AsyncGenerator<ObjectPage> {
  const { delimiter, startAfter, pageSize, signal } = options;
  let marker = "";
  do {
    const call = {
      operation: "LIST",
      method: "GET",
      key: prefix,
      query: {
        restype: "container",
        comp: "list",
        prefix,
        ...(delimiter === undefined ? {} : { delimiter }),
        ...(pageSize === undefined ? {} : { maxresults: String(pageSize) }),
        ...(marker === "" ? {} : { marker }),
      },
      signal,
    } as const;
    const page = parseListing((await session.sendForText(call)).text);
    if (!page) throw session.rest.fail(call, "unavailable", "the answer is no listing");
    // The service cannot begin in the middle by name.
    const after = <T>(entries: readonly T[], name: (entry: T) => string) =>
      startAfter === undefined ? entries : entries.filter((entry) => name(entry) > startAfter);
    yield { objects: after(page.objects, ({ key }) => key), prefixes: after(page.prefixes, (name) => name) };
    marker = page.marker;
  } while (marker !== "");
}
