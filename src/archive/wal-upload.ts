// One WAL file on its way into the store: read, hashed and compressed in one pass, compared with what the archive already
// holds, and sent. Before it: the decision that it must be sent. After it: the durable record.
import { createHash } from "node:crypto";
import { decideExisting } from "../barman/archive-request.ts";
import type { CompressionName } from "../barman/compression.ts";
import { parseWalHeader, walHeaderBytes } from "../barman/wal-header.ts";
import type { BulkFiles, BulkSource } from "../ports/bulk-files.ts";
import type { FileState } from "../ports/file-state.ts";
import { listAll, type ObjectStore, ObjectStoreError, type PutOptions, type PutResult } from "../ports/object-store.ts";
import { compressWal } from "../store/codecs.ts";
import { chooseEffort, type Effort } from "../store/effort.ts";
import type { ArchiveSettings } from "./archive-settings.ts";
import type { BufferPool } from "./buffer-pool.ts";
import type { ArchiveFailpoint } from "./failpoint.ts";
import { hashObject, readPieces } from "./object-hash.ts";
import { WalError } from "./wal-error.ts";

/** Larger files are read twice and sent in parts, so that memory stays bounded. */
const inMemoryBytes = 32 * 1024 * 1024;
const mebibyte = 1024 * 1024;
/** Bytes of a file that become one gzip member: small enough for memory, large enough to lose no ratio. */
const memberBytes = 2 * mebibyte;
const sampleParts = 8;
const samplePartBytes = 32 * 1024;

/** Own metadata of WAL objects; Barman's tools pass over it. */
export const walMetadata = { sha256: "cnpg-ts-sha256", systemId: "cnpg-ts-system-id" } as const;

export interface UploadDeps {
  store: ObjectStore;
  bulk: BulkFiles;
  failpoint: ArchiveFailpoint;
  signal: AbortSignal;
  buffers: BufferPool;
  /** Runs the compression when there are cores for it. */
  cpu<T>(compress: () => Promise<T>): Promise<T>;
  /** Runs the sending when its turn has come. */
  lane<T>(send: () => Promise<T>): Promise<T>;
}

/** What the store holds now, and which state of the file it is. */
export interface UploadedWal {
  state: FileState;
  sha256: string;
  systemId: string;
  key: string;
  checksum: string;
  /** False when the archive held the same bytes already. */
  created: boolean;
}

/** Brings one file into the store; resolves when the store confirmed its bytes. Never replaces an object. */
export async function uploadWal(
  name: string,
  path: string,
  settings: ArchiveSettings,
  deps: UploadDeps,
): Promise<UploadedWal> {
  const attempt = `cannot archive ${name}`;
  try {
    const source = await deps.bulk.open(path);
    try {
      return await new WalUpload(name, path, source, settings, deps).run();
    } finally {
      await source.close();
    }
  } catch (error) {
    throw WalError.from(attempt, error);
  }
}

class WalUpload {
  readonly #name: string;
  readonly #path: string;
  readonly #source: BulkSource;
  readonly #settings: ArchiveSettings;
  readonly #deps: UploadDeps;
  readonly #key: string;

  constructor(name: string, path: string, source: BulkSource, settings: ArchiveSettings, deps: UploadDeps) {
    this.#name = name;
    this.#path = path;
    this.#source = source;
    this.#settings = settings;
    this.#deps = deps;
    this.#key = settings.keys.wal(name, settings.compression);
  }

  async run(): Promise<UploadedWal> {
    if (this.#source.state.size === 0) throw new WalError("local", `cannot archive ${this.#name}: the file is empty`);
    // The listing travels while the bytes are compressed. Its failure is looked at when its result is needed.
    const listing = this.#listSameName();
    listing.catch(() => undefined);
    const systemId = await this.#systemId();
    const { size } = this.#source.state;
    const buffer = size <= inMemoryBytes ? this.#deps.buffers.take(compressedBound(size)) : undefined;
    const uploaded = await this.#upload(buffer, listing, systemId);
    // Not after a failure: a socket that is being closed may still read from it.
    if (buffer) this.#deps.buffers.give(buffer);
    return uploaded;
  }

  async #upload(buffer: Buffer | undefined, listing: Promise<string[]>, systemId: string): Promise<UploadedWal> {
    const prepared = buffer && (await this.#deps.cpu(() => this.#prepare(buffer)));
    const sha256 = prepared?.sha256 ?? (await this.#hash());
    await this.#deps.failpoint("compressed", this.#name);
    const known = { state: this.#source.state, sha256, systemId };

    const existing = await this.#compare(sha256, await listing);
    if (existing) return { ...known, ...existing, created: false };
    await this.#checkUnchanged();
    const sent = await this.#deps.lane(() => this.#send(prepared?.body, sha256, systemId));
    await this.#deps.failpoint("uploaded", this.#name);
    return { ...known, ...sent };
  }

  async #send(body: Uint8Array | undefined, sha256: string, systemId: string) {
    const { store, signal } = this.#deps;
    const tags = this.#name.endsWith(".history") ? this.#settings.historyTags : this.#settings.tags;
    const options: PutOptions = {
      ifAbsent: true,
      tags,
      metadata: { [walMetadata.sha256]: sha256, ...(systemId === "" ? {} : { [walMetadata.systemId]: systemId }) },
      signal,
    };
    try {
      const result: PutResult = body
        ? await store.put(this.#key, [body], options)
        : await store.putStream(this.#key, this.#compress(await this.#effort()), options);
      return { key: this.#key, checksum: result.checksum, created: true };
    } catch (error) {
      if (!(error instanceof ObjectStoreError) || error.kind !== "conflict") throw error;
      // Somebody was faster: another pod, or our own request whose answer was lost on the way.
      const existing = await this.#compare(sha256, await this.#listSameName());
      if (!existing) throw error;
      return { ...existing, created: false };
    }
  }

  /** The whole name, compressed or not: the compression may have been changed since. */
  async #listSameName(): Promise<string[]> {
    const prefix = this.#settings.keys.wal(this.#name);
    const { objects } = await listAll(this.#deps.store, prefix, { signal: this.#deps.signal });
    return objects.map(({ key }) => key);
  }

  async #compare(sha256: string, keys: readonly string[]): Promise<{ key: string; checksum: string } | undefined> {
    const { store, signal } = this.#deps;
    const byName = new Map(keys.map((key) => [key.slice(key.lastIndexOf("/") + 1), key]));
    const objects = [];
    for (const [objectName, key] of byName) {
      const head = await store.head(key, { signal });
      if (head) objects.push({ objectName, sha256: head.metadata[walMetadata.sha256] });
    }
    const decision = decideExisting(this.#name, sha256, objects);
    if (decision.kind === "absent") return undefined;
    const key = byName.get(decision.objectName) ?? decision.objectName;
    const same =
      decision.kind === "same" || (decision.kind === "compare" && (await hashObject(store, key, signal)) === sha256);
    if (same) return { key, checksum: `sha256:${sha256}` };
    throw new WalError(
      "conflict",
      `cannot archive ${this.#name}: ${store.location}/${key} holds other bytes than ${this.#path}, and WAL is never overwritten; two clusters may share destinationPath and serverName`,
    );
  }

  async #systemId(): Promise<string> {
    const header = parseWalHeader(await this.#source.read(0, walHeaderBytes));
    return header?.systemId ?? this.#settings.systemId ?? "";
  }

  async #prepare(buffer: Buffer): Promise<{ body: Uint8Array; sha256: string }> {
    const hash = createHash("sha256");
    const effort = await this.#effort();
    let filled = 0;
    for await (const chunk of this.#compress(effort, (piece) => hash.update(piece))) {
      if (filled + chunk.length > buffer.length) throw new Error("the compressed file outgrew its bound");
      buffer.set(chunk, filled);
      filled += chunk.length;
    }
    return { body: buffer.subarray(0, filled), sha256: hash.digest("hex") };
  }

  async #hash(): Promise<string> {
    const hash = createHash("sha256");
    for await (const piece of readPieces(this.#source, 4 * mebibyte)) hash.update(piece);
    return hash.digest("hex");
  }

  /** The asked level; otherwise what a sample from all over the file says. */
  async #effort(): Promise<Effort> {
    const { compression, level } = this.#settings;
    const { size } = this.#source.state;
    if (compression === undefined || level !== undefined || size < sampleParts * samplePartBytes) return { level };
    const at = (part: number) => Math.floor((size / sampleParts) * part);
    const parts = Array.from({ length: sampleParts }, (_, part) => this.#source.read(at(part), samplePartBytes));
    return chooseEffort(compression, Buffer.concat(await Promise.all(parts)));
  }

  #compress(effort: Effort, see?: (piece: Uint8Array) => void): AsyncIterable<Uint8Array> {
    const { compression, cores } = this.#settings;
    const { size } = this.#source.state;
    const pieces = readPieces(this.#source, inPieces(compression) ? memberBytes : mebibyte);
    return compressWal(see ? tap(pieces, see) : pieces, compression, { ...effort, parallel: cores, size });
  }

  /** A file that was written to while it was read is not what anybody asked to archive. */
  async #checkUnchanged(): Promise<void> {
    const { state } = this.#source;
    const now = await this.#deps.bulk.stat(this.#path);
    if (now && now.inode === state.inode && now.size === state.size && now.mtimeNs === state.mtimeNs) return;
    throw new WalError("local", `cannot archive ${this.#name}: ${this.#path} changed while it was read`);
  }
}

async function* tap(pieces: AsyncIterable<Uint8Array>, see: (piece: Uint8Array) => void): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces) {
    see(piece);
    yield piece;
  }
}

/** More bytes than any of the formats makes of a file. */
function compressedBound(size: number): number {
  return size + Math.ceil(size / 64) + 64 * 1024;
}

/** Whether one file is compressed by several cores: only in formats whose readers accept several streams in a row. */
export function inPieces(compression: CompressionName | undefined): boolean {
  return compression === "gzip";
}
