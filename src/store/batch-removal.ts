// Removals in batches: many requests in one, as multipart/mixed, in the form that Azure and Google share.
import { randomBytes } from "node:crypto";
import { ObjectStoreError } from "../ports/object-store.ts";
import { removeEach } from "./remove-each.ts";

/** A DELETE inside of a batch; names of headers in lower case. */
export interface BatchPart {
  path: string;
  headers?: Readonly<Record<string, string>>;
}

/** The body of a batch and its content type. */
export function formatBatch(
  parts: readonly BatchPart[],
  boundary = `batch_${randomBytes(12).toString("hex")}`,
): { contentType: string; body: Buffer } {
  const texts = parts.map(({ path, headers = {} }, id) => {
    const outer = ["Content-Type: application/http", "Content-Transfer-Encoding: binary", `Content-ID: ${id}`];
    const own = Object.entries({ ...headers, "Content-Length": "0" }).map(([name, value]) => `${name}: ${value}`);
    // The last line's end belongs to the boundary, the one before it ends the headers.
    return [`--${boundary}`, ...outer, "", `DELETE ${path} HTTP/1.1`, ...own, "", "", ""].join("\r\n");
  });
  const body = Buffer.from(`${texts.join("")}--${boundary}--\r\n`);
  return { contentType: `multipart/mixed; boundary=${boundary}`, body };
}

/** Statuses of the parts of an answer, by their place in the batch; parts that cannot be told from each other are left out. */
export function readBatch(text: string): ReadonlyMap<number, number> {
  const statuses = new Map<number, number>();
  for (const part of text.split(/^--/m)) {
    const id = /^content-id:\s*<?(?:response-)?(\d+)>?\s*$/im.exec(part)?.[1];
    const status = /^HTTP\/\d(?:\.\d)? (\d{3})/m.exec(part)?.[1];
    if (id !== undefined && status !== undefined) statuses.set(Number(id), Number(status));
  }
  return statuses;
}

/** How one kind of store removes. */
export interface Removal {
  /** Keys of one batch. */
  batchSize: number;
  /** Sends one batch and gives the text of the answer. */
  sendBatch(keys: readonly string[]): Promise<string>;
  removeOne(key: string): Promise<unknown>;
}

/** Removes objects by batches; what a batch does not say for certain to be gone is removed by itself, with a failure of its own. */
export async function removeByBatches(keys: readonly string[], removal: Removal): Promise<void> {
  const left: string[] = [];
  for (let at = 0; at < keys.length; at += removal.batchSize) {
    const batch = keys.slice(at, at + removal.batchSize);
    const statuses = batch.length > 1 ? await tryBatch(batch, removal) : new Map<number, number>();
    left.push(...batch.filter((_key, id) => !isGone(statuses.get(id))));
  }
  await removeEach(left, (key) => removal.removeOne(key));
}

function isGone(status: number | undefined): boolean {
  return status !== undefined && status >= 200 && status < 300;
}

async function tryBatch(batch: readonly string[], { sendBatch }: Removal): Promise<ReadonlyMap<number, number>> {
  try {
    return readBatch(await sendBatch(batch));
  } catch (error) {
    // Not every account and not every emulator takes batches.
    if (error instanceof ObjectStoreError) return new Map();
    throw error;
  }
}
