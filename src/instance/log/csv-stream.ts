import { splitCsv } from "./csv-record.ts";

export interface CsvStreamOptions {
  /** A record's values; false says that they make no record, which counts as broken input. */
  onRecord(values: readonly string[]): boolean;
  /** Input that was passed over, with its size in bytes. */
  onBroken(reason: string, bytes: number): void;
  /** Longest record, in bytes. @default 1 MiB */
  maxRecordBytes?: number;
}

const quote = 0x22;
const comma = 0x2c;
const newline = 0x0a;

/** A record begins with `2026-11-30 00:03:26.212 `; this many bytes decide. */
const startBytes = 24;
const startPattern = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} $/;

type State = "fieldStart" | "unquoted" | "quoted" | "quoteSeen";

/**
 * Cuts the byte stream of PostgreSQL's CSV log into records. Newlines inside quotes belong to the record. After broken
 * input it goes on at the next line that begins like a record, so that one bad line costs nothing but itself.
 */
export class CsvStream {
  readonly #options: CsvStreamOptions;
  readonly #maxBytes: number;
  /** Bytes from the start of the current record on. */
  #pending: Buffer = Buffer.alloc(0);
  #scan = 0;
  #state: State = "fieldStart";
  /** Bytes already let go of a record that is too long; its end is still looked for. */
  #skipped = 0;
  /** Looking for the next line that begins like a record. */
  #hunting = false;
  #atLineStart = true;

  constructor(options: CsvStreamOptions) {
    this.#options = options;
    this.#maxBytes = options.maxRecordBytes ?? 1024 * 1024;
  }

  /** Takes the next bytes of the stream, cut anywhere. */
  push(chunk: Buffer): void {
    this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    while (this.#hunting ? this.#hunt() : this.#readRecord()) {
      // Each round ends one record or one hunt.
    }
    // A slice of a chunk would keep the whole chunk alive.
    if (this.#pending.length > 0 && this.#pending.length < chunk.length / 2) this.#pending = Buffer.from(this.#pending);
  }

  /** Scans on from where the last chunk ended; true when a record ended. */
  #readRecord(): boolean {
    const bytes = this.#pending;
    let index = this.#scan;
    for (; index < bytes.length; index += 1) {
      if (this.#state === "quoted") {
        index = bytes.indexOf(quote, index);
        if (index === -1) break;
        this.#state = "quoteSeen";
        continue;
      }
      const byte = bytes[index];
      if (byte === newline) {
        this.#endRecord(index);
        return true;
      }
      const next = nextState(this.#state, byte);
      if (next === undefined) {
        this.#recover(index, "quotes are not paired");
        return true;
      }
      this.#state = next;
    }
    this.#scan = bytes.length;
    if (bytes.length > this.#maxBytes || this.#skipped > 0) this.#forget();
    return false;
  }

  #endRecord(end: number): void {
    const bytes = this.#pending;
    if (this.#skipped > 0 || end > this.#maxBytes) {
      this.#options.onBroken("record is too long", this.#skipped + end);
      this.#restart(end + 1);
      return;
    }
    const values = splitCsv(bytes.toString("utf8", 0, end));
    if (values && this.#options.onRecord(values)) {
      this.#restart(end + 1);
      return;
    }
    // An earlier record whose end was lost may have swallowed this one.
    const inner = findRecordStart(bytes, 1, end);
    this.#options.onBroken(`record has ${values?.length ?? 0} columns`, inner ?? end + 1);
    this.#restart(inner ?? end + 1);
  }

  #recover(at: number, reason: string): void {
    const inner = findRecordStart(this.#pending, this.#skipped > 0 ? 0 : 1, at);
    this.#options.onBroken(reason, this.#skipped + (inner ?? at));
    this.#restart(inner ?? at);
    if (inner !== undefined) return;
    this.#hunting = true;
    this.#atLineStart = false;
  }

  /** Passes over lines until one begins like a record; true when it found one. */
  #hunt(): boolean {
    const bytes = this.#pending;
    let line = this.#atLineStart ? 0 : nextLine(bytes, 0);
    while (line !== undefined) {
      // The decision needs more bytes than there are.
      if (bytes.length - line < startBytes) {
        this.#restart(line);
        this.#atLineStart = true;
        return false;
      }
      if (isRecordStart(bytes, line)) {
        this.#restart(line);
        this.#hunting = false;
        return true;
      }
      line = nextLine(bytes, line);
    }
    this.#restart(bytes.length);
    this.#atLineStart = false;
    return false;
  }

  /** Lets go of a record that has grown too long, but keeps following its quotes to find its end. */
  #forget(): void {
    this.#skipped += this.#pending.length;
    this.#pending = Buffer.alloc(0);
    this.#scan = 0;
  }

  #restart(at: number): void {
    this.#pending = this.#pending.subarray(at);
    this.#scan = 0;
    this.#state = "fieldStart";
    this.#skipped = 0;
  }
}

function nextState(state: State, byte: number | undefined): State | undefined {
  if (byte === comma) return "fieldStart";
  if (byte !== quote) return state === "quoteSeen" ? undefined : "unquoted";
  if (state === "fieldStart" || state === "quoteSeen") return "quoted";
  return undefined;
}

function findRecordStart(bytes: Buffer, from: number, to: number): number | undefined {
  let line = nextLine(bytes, from);
  while (line !== undefined && line <= to) {
    if (isRecordStart(bytes, line)) return line;
    line = nextLine(bytes, line);
  }
  return undefined;
}

function isRecordStart(bytes: Buffer, at: number): boolean {
  return startPattern.test(bytes.toString("latin1", at, at + startBytes));
}

function nextLine(bytes: Buffer, from: number): number | undefined {
  const end = bytes.indexOf(newline, from);
  return end === -1 ? undefined : end + 1;
}
