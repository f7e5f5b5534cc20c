import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "../../ports/logger.ts";
import type { WriteLine } from "./child-output.ts";
import { nameLogColumns } from "./csv-record.ts";
import { CsvStream } from "./csv-stream.ts";
import { createDeferred } from "./deferred.ts";
import { ensureFifo, openFifo } from "./fifo.ts";
import { LineStream } from "./line-stream.ts";
import { parseAuditRecord } from "./pgaudit.ts";
import { createRecordEncoder, type RecordEncoder, type RecordEncoderOptions } from "./record-encoder.ts";
import { type PipeName, pipeNames, replaySpillFile } from "./spill-file.ts";

/** Longest time that the end of reading may take, in milliseconds; whoever takes the lines may be stuck. */
const endLimitMs = 3_000;

export interface LogPipesOptions {
  /** Folder of the named pipes. */
  logDir: string;
  /** What the launcher kept while no runtime was up. */
  spillPath?: string;
  /** Lines the launcher had to let go. */
  droppedLines?: number;
  /** For faults of the pipes themselves. */
  logger: Logger;
  /** Takes finished lines: records for stderr, lines of our own archive clients for stdout. */
  write: WriteLine;
  /** How records are written: pod name, keys. */
  format?: RecordEncoderOptions;
  /** Ends the reading; what the pipes hold at that moment still comes out. */
  signal: AbortSignal;
}

export interface LogPipes {
  /** Resolves once every pipe is open, so that PostgreSQL may start. */
  start(): Promise<void>;
  /** Resolves when all reading has ended, at the latest 3 s after it was asked to. */
  readonly done: Promise<void>;
}

/** Reads what PostgreSQL and our archive clients log through named pipes and writes it as JSON lines. */
export function createLogPipes(options: LogPipesOptions): LogPipes {
  const { logDir, logger, write, signal } = options;
  const encode = createRecordEncoder(options.format);
  const done = createDeferred<void>();
  const aborted = createDeferred<void>();
  const limitEnd = () => {
    aborted.resolve();
    setTimeout(() => done.resolve(), endLimitMs).unref();
  };
  signal.addEventListener("abort", limitEnd, { once: true });
  const consumers = new Map(pipeNames.map((name) => [name, createConsumer(name, logDir, encode, write, logger)]));

  async function start(): Promise<void> {
    await Promise.all(pipeNames.map((name) => ensureFifo(`${logDir}/${name}`)));
    void run().finally(() => {
      signal.removeEventListener("abort", limitEnd);
      done.resolve();
    });
  }

  async function run(): Promise<void> {
    if (options.droppedLines) {
      logger.warning("Log lines were dropped while the runtime was away", { lines: options.droppedLines });
    }
    // Older lines first: until they are out, newer ones wait in the pipes.
    if (options.spillPath) await replay(options.spillPath);
    await Promise.all(pipeNames.map((name) => readForever(name)));
  }

  async function replay(path: string): Promise<void> {
    try {
      const take = async (pipe: PipeName, bytes: Buffer) => {
        await Promise.race([consumers.get(pipe)?.(bytes), aborted.promise]);
      };
      await replaySpillFile(path, take, signal);
    } catch (error) {
      if (!signal.aborted) logger.error("Cannot read the lines kept while the runtime was away", { path, error });
    }
  }

  async function readForever(name: PipeName): Promise<void> {
    const path = `${logDir}/${name}`;
    for (;;) {
      try {
        await ensureFifo(path);
        const reader = openFifo(path, (chunk) => consumers.get(name)?.(chunk));
        const stop = () => void reader.close();
        signal.addEventListener("abort", stop, { once: true });
        if (signal.aborted) stop();
        const failure = await reader.closed;
        signal.removeEventListener("abort", stop);
        if (failure) logger.error("Log pipe failed and is opened again", { path, error: failure });
      } catch (error) {
        logger.error("Cannot open a log pipe, trying again", { path, error });
      }
      if (signal.aborted) return;
      await sleep(500, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
    }
  }

  return { start, done: done.promise };
}

type Consumer = (chunk: Buffer) => Promise<void> | undefined;

function createConsumer(
  name: PipeName,
  logDir: string,
  encode: RecordEncoder,
  write: WriteLine,
  logger: Logger,
): Consumer {
  const path = `${logDir}/${name}`;
  let wait: Promise<void> | undefined;
  const emit = (line: string, stream: "stdout" | "stderr") => {
    wait = write(line, stream) ?? wait;
  };
  const push = createParser(name, path, encode, emit, logger);
  return (chunk) => {
    wait = undefined;
    push(chunk);
    return wait;
  };
}

function createParser(
  name: PipeName,
  path: string,
  encode: RecordEncoder,
  emit: (line: string, stream: "stdout" | "stderr") => void,
  logger: Logger,
): (chunk: Buffer) => void {
  if (name === "postgres.csv") {
    const stream = new CsvStream({
      onRecord: (values) => emitRecord(values, encode, emit),
      onBroken: (reason, bytes) => logger.error("Passed over broken text in PostgreSQL's log", { path, reason, bytes }),
    });
    return (chunk) => stream.push(chunk);
  }
  const onTooLong = (bytes: number) => logger.error("Passed over a log line that is too long", { path, bytes });
  const stream = new LineStream({ onTooLong, onLine: (line) => emitLine(name, path, line, encode, emit) });
  return (chunk) => stream.push(chunk);
}

function emitRecord(
  values: readonly string[],
  encode: RecordEncoder,
  emit: (line: string, stream: "stdout" | "stderr") => void,
): boolean {
  const record = nameLogColumns(values);
  if (!record) return false;
  const audit = parseAuditRecord(record);
  if (audit) emit(encode("pgaudit", "record", { record: { ...audit.record, audit: audit.audit } }), "stderr");
  else emit(encode("postgres", "record", { record }), "stderr");
  return true;
}

function emitLine(
  name: PipeName,
  path: string,
  line: string,
  encode: RecordEncoder,
  emit: (line: string, stream: "stdout" | "stderr") => void,
): void {
  switch (name) {
    case "postgres.json":
      // Our archive clients write finished records.
      if (line !== "") emit(line, "stdout");
      break;
    case "postmaster.out":
    case "postmaster.err":
      emit(encode("postgres", line, { pipe: name === "postmaster.out" ? "stdout" : "stderr" }), "stderr");
      break;
    default:
      emit(encode("postgres", line, { source: path }), "stderr");
  }
}
