import { execFile } from "node:child_process";
import { chmod, mkdir, mkdtemp, open, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createLogPipes, type LogPipesOptions } from "../../../src/instance/log/log-pipes.ts";
import { pipeNames } from "../../../src/instance/log/spill-file.ts";
import type { Logger } from "../../../src/ports/logger.ts";
import { createSqlConnector } from "../../../src/sql/pg-connector.ts";
import { startPostgres } from "../../support/postgres-server.ts";

const run = promisify(execFile);

interface Line {
  stream: "stdout" | "stderr";
  logger?: string;
  msg?: string;
  source?: string;
  pipe?: string;
  record?: Record<string, string>;
}

let folder: string;
let logDir: string;
let lines: Line[];
let faults: string[];
let controller: AbortController;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "pipes-"));
  await chmod(folder, 0o755);
  logDir = join(folder, "log");
  await mkdir(logDir);
  // As the launcher does before it starts the runtime.
  for (const name of pipeNames) await run("mkfifo", ["-m", "666", join(logDir, name)]);
  lines = [];
  faults = [];
  controller = new AbortController();
});

afterEach(async () => {
  controller.abort();
  await rm(folder, { recursive: true, force: true });
});

const logger: Logger = {
  error: (message, fields) => faults.push(`${message} ${String(fields?.["reason"] ?? fields?.["error"] ?? "")}`),
  warning: (message) => faults.push(message),
  info: () => undefined,
  debug: () => undefined,
  trace: () => undefined,
  child: () => logger,
};

function createPipes(options: Partial<LogPipesOptions> = {}) {
  return createLogPipes({
    logDir,
    logger,
    signal: controller.signal,
    format: { podName: "c-1" },
    write: (text, stream) => {
      const value = text.startsWith("{") ? (JSON.parse(text) as Omit<Line, "stream">) : { msg: text };
      lines.push({ stream, ...value });
      return undefined;
    },
    ...options,
  });
}

async function writePipe(name: string, text: string): Promise<void> {
  const file = await open(join(logDir, name), "w");
  await file.writeFile(text);
  await file.close();
}

async function until(condition: () => boolean, what: string): Promise<void> {
  for (let attempt = 0; attempt < 600; attempt += 1) {
    if (condition()) return;
    await sleep(20);
  }
  throw new Error(`waited in vain for ${what}; faults: ${faults.join(" | ")}`);
}

function csv(message: string): string {
  return `2026-11-30 00:03:26.212 UTC,,,1,,x,1,,,,0,LOG,00000,"${message}",,,,,,,,,"","postmaster",,0\n`;
}

describe("log pipes", () => {
  it("turn each pipe into its kind of line", async () => {
    const pipes = createPipes();
    await pipes.start();
    await writePipe("postgres", "raw line\n");
    await writePipe("postgres.csv", csv("hello"));
    await writePipe("postgres.json", '{"level":"info","msg":"archived"}\n');
    await writePipe("postmaster.out", "out\n");
    await writePipe("postmaster.err", "err\n");
    await until(() => lines.length === 5, "five lines");
    const find = (msg: string) => lines.find((line) => line.msg === msg);
    expect(find("raw line")).toMatchObject({ logger: "postgres", source: join(logDir, "postgres"), stream: "stderr" });
    expect(find("record")).toMatchObject({ logger: "postgres", logging_pod: "c-1", record: { message: "hello" } });
    expect(find("archived")).toEqual({ stream: "stdout", level: "info", msg: "archived" });
    expect(find("out")).toMatchObject({ logger: "postgres", pipe: "stdout" });
    expect(find("err")).toMatchObject({ logger: "postgres", pipe: "stderr" });
    expect(faults).toEqual([]);
  });

  it("go on after a writer went away, and give out what is left when they end", async () => {
    const pipes = createPipes();
    await pipes.start();
    for (const text of ["one\n", "two\n"]) {
      await writePipe("postgres", text);
      await until(() => lines.some((line) => line.msg === text.trim()), text);
    }
    await writePipe("postgres", "last words\n");
    controller.abort();
    await pipes.done;
    expect(lines.map((line) => line.msg)).toEqual(["one", "two", "last words"]);
  });

  it("end at once when nobody ever writes", async () => {
    const pipes = createPipes();
    await pipes.start();
    const begin = Date.now();
    controller.abort();
    await pipes.done;
    expect(Date.now() - begin).toBeLessThan(1_000);
  });

  it("end although the taker of lines is stuck", async () => {
    const pipes = createPipes({ write: () => new Promise<void>(() => undefined) });
    await pipes.start();
    await writePipe("postgres", "x\n".repeat(10));
    await sleep(100);
    controller.abort();
    await pipes.done;
    expect(controller.signal.aborted).toBe(true);
  });

  it("make pipes that are missing", async () => {
    await rm(logDir, { recursive: true });
    await mkdir(logDir);
    const pipes = createPipes();
    await pipes.start();
    await writePipe("postgres.csv", csv("made"));
    await until(() => lines.length === 1, "the record");
    expect((await readdir(logDir)).sort()).toEqual([...pipeNames].sort());
  });

  it("give out what the launcher kept before what comes now", async () => {
    const spillPath = join(folder, "spill");
    const text = csv("kept one") + csv("kept two");
    const cut = 50;
    const parts = [text.slice(0, cut), text.slice(cut)].map((part) => record(1, part));
    const torn = record(0, "never finished").subarray(0, 9);
    await writeFile(spillPath, Buffer.concat([...parts, record(0, "raw kept\n"), torn]));
    const pipes = createPipes({ spillPath, droppedLines: 3 });
    await pipes.start();
    await writePipe("postgres.csv", csv("new"));
    await until(() => lines.length === 4, "kept and new lines");
    expect(lines.map((line) => line.record?.["message"] ?? line.msg)).toEqual([
      "kept one",
      "kept two",
      "raw kept",
      "new",
    ]);
    expect(faults).toEqual(["Log lines were dropped while the runtime was away"]);
    expect(await readdir(folder)).not.toContain("spill");
  });

  it("let a flood wait in the pipe while lines are not taken", async () => {
    let release: () => void = () => undefined;
    let taken = 0;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const pipes = createPipes({
      write: () => {
        taken += 1;
        return gate;
      },
    });
    await pipes.start();
    const total = 200_000;
    const writing = writePipe("postgres", "0123456789\n".repeat(total));
    await sleep(300);
    const before = taken;
    expect(before).toBeLessThan(total / 2);
    release();
    await writing;
    await until(() => taken === total, "the whole flood");
  });
});

it("ends within 3 s although whoever takes the lines is stuck for good", async () => {
  const stuck = new Promise<void>(() => undefined);
  const spillPath = join(folder, "spill");
  await writeFile(spillPath, Buffer.concat([record(0, "one\n"), record(0, "two\n")]));
  const pipes = createPipes({ spillPath, write: () => stuck });
  await pipes.start();
  await sleep(100);
  const started = performance.now();
  controller.abort();
  await pipes.done;
  expect(performance.now() - started).toBeLessThan(4_000);
});

describe("with a real server", () => {
  it("every statement comes out under log_statement = all", async () => {
    const pipes = createPipes();
    await pipes.start();
    const server = await startPostgres({
      settings: {
        logging_collector: "on",
        log_destination: "csvlog",
        log_directory: logDir,
        log_filename: "postgres",
        log_rotation_age: "0",
        log_rotation_size: "0",
        log_truncate_on_rotation: "off",
        log_statement: "all",
      },
    });
    try {
      const session = await createSqlConnector().connect({
        host: server.socketDir,
        port: server.port,
        user: "postgres",
        database: "postgres",
        applicationName: "flood",
      });
      const count = 2_000;
      for (let at = 0; at < count; at += 1) await session.query(`SELECT ${at} AS "q""uote",\n 'two lines'`);
      await session.close();
      const statements = () => lines.filter((line) => line.record?.["application_name"] === "flood");
      await until(() => statements().length >= count, "every statement");
      expect(statements().map((line) => line.record?.["message"])).toEqual(
        Array.from({ length: count }, (_, at) => `statement: SELECT ${at} AS "q""uote",\n 'two lines'`),
      );
      expect(statements()[0]?.record).toMatchObject({ backend_type: "client backend", error_severity: "LOG" });
      expect(lines.some((line) => line.source === join(logDir, "postgres"))).toBe(true);
    } finally {
      await server.stop();
    }
    expect(faults).toEqual([]);
  });
});

function record(index: number, text: string): Buffer {
  const body = Buffer.from(text);
  const head = Buffer.alloc(5);
  head[0] = index;
  head.writeUInt32BE(body.length, 1);
  return Buffer.concat([head, body]);
}
