// The bytes of a tar archive become entries again: GNU, ustar and pax headers, in any order.
import {
  parsePaxRecords,
  parsePaxSeconds,
  parseTarHeader,
  type TarEntry,
  type TarHeader,
  tarBlockBytes,
  tarPadding,
} from "../../barman/tar-header.ts";
import { CorruptStreamError } from "../../store/codecs.ts";

/** Extended headers larger than this are none of a base backup. */
const mostHeaderBytes = 1024 * 1024;

/** An entry and its bytes; what of them is not read is passed over. */
export interface ReadEntry {
  entry: TarEntry;
  content: AsyncIterable<Uint8Array>;
}

const kinds: Readonly<Record<string, TarEntry["kind"]>> = {
  "0": "file",
  "7": "file",
  "1": "hardlink",
  "2": "symlink",
  "5": "directory",
};

/** Reads the entries of an archive; fails with `CorruptStreamError` when it is damaged or ends early. */
export async function* readTar(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<ReadEntry> {
  const source = new ByteSource(chunks);
  let shared = new Map<string, string>();
  let own = new Map<string, string>();
  try {
    for (;;) {
      const header = parseTarHeader(await source.take(tarBlockBytes));
      if (header === "end") break;
      if ("error" in header) throw new CorruptStreamError(`a header of the tar archive is damaged: ${header.error}`);
      if (header.type === "g") shared = new Map([...shared, ...(await extension(source, header))]);
      else if (header.type === "x") own = new Map([...own, ...(await extension(source, header))]);
      else if (header.type === "L") own.set("path", await longText(source, header));
      else if (header.type === "K") own.set("linkpath", await longText(source, header));
      else {
        const entry = buildEntry(header, new Map([...shared, ...own]));
        own = new Map();
        // Links and folders have no bytes, whatever size their header tells.
        const size = kinds[header.type] === "file" ? entry.size : 0;
        const content = source.span(size);
        yield { entry, content };
        await source.skipSpan();
        await source.take(tarPadding(size));
      }
    }
    // A compressed stream is checked at its end only.
    await source.drain();
  } finally {
    await source.close();
  }
}

async function extension(source: ByteSource, header: TarHeader): Promise<Map<string, string>> {
  const records = parsePaxRecords(await headerData(source, header));
  if (!records) throw new CorruptStreamError("an extended header of the tar archive is damaged");
  return records;
}

async function longText(source: ByteSource, header: TarHeader): Promise<string> {
  const text = Buffer.from(await headerData(source, header)).toString("utf8");
  const end = text.indexOf("\0");
  return end < 0 ? text : text.slice(0, end);
}

async function headerData(source: ByteSource, { size }: TarHeader): Promise<Uint8Array> {
  if (size > mostHeaderBytes) throw new CorruptStreamError(`a header of the tar archive claims ${size} bytes`);
  const data = await source.take(size);
  await source.take(tarPadding(size));
  return data;
}

function buildEntry(header: TarHeader, records: ReadonlyMap<string, string>): TarEntry {
  const name = records.get("path") ?? header.name;
  const kind = kinds[header.type];
  if (kind === undefined || records.has("GNU.sparse.major") || records.has("GNU.sparse.map")) {
    throw new CorruptStreamError(`${name} in the tar archive is of a kind that base backups do not have`);
  }
  const number = (key: string, value: number) => {
    const read = Number(records.get(key) ?? value);
    if (Number.isSafeInteger(read) && read >= 0) return read;
    throw new CorruptStreamError(`${name} in the tar archive has no readable ${key}`);
  };
  return {
    name,
    // Old archives write folders as files whose name ends with a slash.
    kind: kind === "file" && name.endsWith("/") ? "directory" : kind,
    mode: header.mode & 0o7777,
    uid: number("uid", header.uid),
    gid: number("gid", header.gid),
    size: number("size", header.size),
    mtimeNs: parsePaxSeconds(records.get("mtime") ?? "") ?? BigInt(header.mtime) * 1_000_000_000n,
    linkName: records.get("linkpath") ?? header.linkName,
  };
}

/** Cuts a stream of chunks into what is asked for. */
class ByteSource {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #chunk: Uint8Array = new Uint8Array();
  #span = 0;

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  async take(length: number): Promise<Uint8Array> {
    if (this.#chunk.length >= length) return this.#cut(length);
    const parts: Uint8Array[] = [];
    for (let missing = length; missing > 0; ) {
      const part = await this.#some(missing);
      parts.push(part);
      missing -= part.length;
    }
    return Buffer.concat(parts);
  }

  /** The next bytes, bit by bit; at most one span at a time. */
  span(length: number): AsyncIterable<Uint8Array> {
    this.#span = length;
    return this.#restOfSpan();
  }

  async *#restOfSpan(): AsyncGenerator<Uint8Array> {
    while (this.#span > 0) {
      const part = await this.#some(this.#span);
      this.#span -= part.length;
      yield part;
    }
  }

  /** Passes over what nobody read of the span. */
  async skipSpan(): Promise<void> {
    while (this.#span > 0) this.#span -= (await this.#some(this.#span)).length;
  }

  async drain(): Promise<void> {
    while (!(await this.#chunks.next()).done);
  }

  async close(): Promise<void> {
    await this.#chunks.return?.(undefined);
  }

  async #some(most: number): Promise<Uint8Array> {
    while (this.#chunk.length === 0) {
      const next = await this.#chunks.next();
      if (next.done) throw new CorruptStreamError("the tar archive ends early");
      this.#chunk = next.value;
    }
    return this.#cut(Math.min(most, this.#chunk.length));
  }

  #cut(length: number): Uint8Array {
    const part = this.#chunk.subarray(0, length);
    this.#chunk = this.#chunk.subarray(length);
    return part;
  }
}
