import { createHash, randomBytes } from "node:crypto";
import type { PutOptions, PutResult, PutStreamOptions } from "../../ports/object-store.ts";
import { headerOf } from "../http-client.ts";
import { cutStream, sendPatiently } from "../send-parts.ts";
import { type AzureSession, headOf } from "./azure-session.ts";

/** Uploads bytes in one request, which the service checks against their MD5. */
export async function putBlob(
  session: AzureSession,
  key: string,
  body: Uint8Array,
  options: PutOptions,
): Promise<PutResult> {
  const md5 = createHash("md5").update(body).digest();
  const call = { operation: "PUT", method: "PUT", key, signal: options.signal } as const;
  const answer = await session.sendForHead({
    ...call,
    body,
    headers: {
      ...session.objectHeaders(options),
      "x-ms-blob-type": "BlockBlob",
      "content-md5": md5.toString("base64"),
      "content-type": "application/octet-stream",
    },
  });
  const said = headerOf(answer.headers, "content-md5");
  if (said === undefined) await compare(session, key, md5, options.signal);
  else if (said !== md5.toString("base64")) throw session.rest.fail(call, "corrupt", "the store holds other bytes");
  return { size: body.length, checksum: `md5:${md5.toString("hex")}` };
}

/**
 * Uploads a stream of unknown length as blocks; one that fits into a block goes in one request. Blocks that are never committed
 * show nowhere, and the service drops them after a week.
 */
export async function putBlobStream(
  session: AzureSession,
  key: string,
  source: AsyncIterable<Uint8Array>,
  options: PutStreamOptions,
): Promise<PutResult> {
  const { signal } = options;
  const cut = await cutStream(source, options.partBytes ?? 8 * 1024 * 1024);
  if ("whole" in cut) return sendPatiently(() => putBlob(session, key, cut.whole, options), options.again);
  // Own names, so that two who upload to one key at once never commit each other's blocks.
  const upload = randomBytes(6).toString("hex");
  const ids: string[] = [];
  const md5s: Buffer[] = [];
  let size = 0;
  try {
    await cut.parts.sendAll(options, async (number, body) => {
      const md5 = createHash("md5").update(body).digest();
      const blockid = Buffer.from(`${upload}-${String(number).padStart(5, "0")}`).toString("base64");
      await session.sendForHead({
        operation: `PUT BLOCK ${number}`,
        method: "PUT",
        key,
        query: { comp: "block", blockid },
        headers: { "content-md5": md5.toString("base64"), ...session.encryptionHeaders() },
        body,
        signal,
      });
      ids[number - 1] = blockid;
      md5s[number - 1] = md5;
      size += body.length;
    });
  } catch (error) {
    await cut.parts.close();
    throw error;
  }
  await commit(session, key, ids, options);
  const head = headOf(key, await session.sendForHead({ operation: "HEAD", method: "HEAD", key, signal }));
  // Every block was checked by its MD5; what is left to prove is that all of them were joined.
  if (head.size !== size) {
    const reason = `the joined object has ${head.size} bytes instead of ${size}`;
    throw session.rest.fail({ operation: "PUT BLOCK LIST", key }, "corrupt", reason);
  }
  const whole = createHash("md5").update(Buffer.concat(md5s)).digest("hex");
  return { size, checksum: `md5:${whole}-${ids.length}` };
}

async function commit(session: AzureSession, key: string, ids: readonly string[], options: PutOptions): Promise<void> {
  const list = ids.map((id) => `<Uncommitted>${id}</Uncommitted>`).join("");
  await session.sendForHead({
    operation: "PUT BLOCK LIST",
    method: "PUT",
    key,
    query: { comp: "blocklist" },
    headers: {
      ...session.objectHeaders(options),
      "content-type": "application/xml",
      "x-ms-blob-content-type": "application/octet-stream",
    },
    body: Buffer.from(`<?xml version="1.0" encoding="utf-8"?><BlockList>${list}</BlockList>`),
    signal: options.signal,
  });
}

/** For an answer that names no checksum: the bytes are read again. */
async function compare(session: AzureSession, key: string, md5: Buffer, signal?: AbortSignal): Promise<void> {
  const hash = createHash("md5");
  const stored = await session.get(key, signal);
  for await (const chunk of stored.chunks) hash.update(chunk);
  if (hash.digest().equals(md5)) return;
  throw session.rest.fail({ operation: "PUT", key }, "corrupt", "the store holds other bytes than were sent");
}
