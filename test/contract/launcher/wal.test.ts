import { spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { mkdir, readFile, rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { WalServer } from "../../../src/instance/wal/wal-server.ts";
import { createFiles } from "../../../src/process/files.ts";
import { captureLogs } from "../../support/log-capture.ts";
import { installPod, sleep, until } from "./pod.ts";

let root: string;
let server: Server | undefined;
beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), "cnpg-ts-wal-"));
  await installPod(root);
  await mkdir(join(root, "ipc"));
  await mkdir(join(root, "pgdata"));
});
afterEach(async () => {
  server?.close();
  server = undefined;
  await rm(root, { recursive: true, force: true });
});

/** Listens as the runtime does; `answer` gets the fields of each request. */
async function listen(answer: (fields: string[], socket: Socket) => void): Promise<void> {
  const listening = createServer((socket) => {
    let received = Buffer.alloc(0);
    socket.on("data", (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      if (received.length >= 4 && received.length === 4 + received.readUInt32BE(0))
        answer(received.toString("utf8", 4).split("\0"), socket);
    });
    socket.on("error", () => {});
  });
  server = listening;
  await new Promise<void>((resolve) => listening.listen(join(root, "ipc", "wal.sock"), resolve));
}

function frame(...fields: string[]): Buffer {
  const body = Buffer.from(fields.join("\0"));
  const head = Buffer.alloc(4);
  head.writeUInt32BE(body.length);
  return Buffer.concat([head, body]);
}

interface Outcome {
  code: number | null;
  stderr: string;
  tookMs: number;
}

function run(...args: string[]): Promise<Outcome> {
  const started = Date.now();
  const child = spawn(join(root, "manager"), args, { cwd: join(root, "pgdata"), env: { POD_NAME: "pod-1" } });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  return new Promise((resolve) => child.on("close", (code) => resolve({ code, stderr, tookMs: Date.now() - started })));
}

it("ends by a signal while it waits for a runtime", async () => {
  const child = spawn(join(root, "manager"), ["wal-archive", "a"], { cwd: join(root, "pgdata"), env: {} });
  const end = new Promise((resolve) => child.on("close", (_code, signal) => resolve(signal)));
  // Its mask would be the launcher's, whose signals have a reader.
  const blocked = async () => /^SigBlk:\s*(\S+)$/m.exec(await readFile(`/proc/${child.pid}/status`, "utf8"))?.[1];
  const own = async () => (await readFile(`/proc/${child.pid}/cmdline`, "utf8")).includes("wal-archive");
  await until("it runs unmasked", async () => (await own()) && Number.parseInt((await blocked()) ?? "1", 16) === 0);
  child.kill("SIGTERM");
  expect(await end).toBe("SIGTERM");
});

it("asks with name and working folder, and ends silently with the code of the answer", async () => {
  const asked: string[][] = [];
  await listen((fields, socket) => {
    asked.push(fields);
    socket.end(frame(fields[0] === "wal-restore" ? "1" : "0", ""));
  });
  const archive = await run("wal-archive", "--log-destination", "/dev/null", "pg_wal/000000010000000000000001");
  expect(archive).toMatchObject({ code: 0, stderr: "" });
  const restore = await run("wal-restore", "--log-level=debug", "00000002.history", "pg_wal/RECOVERYHISTORY");
  expect(restore).toMatchObject({ code: 1, stderr: "" });
  const cwd = join(root, "pgdata");
  expect(asked).toEqual([
    ["wal-archive", "pg_wal/000000010000000000000001", cwd],
    ["wal-restore", "00000002.history", "pg_wal/RECOVERYHISTORY", cwd],
  ]);
});

it("is done in a few milliseconds", async () => {
  await listen((_fields, socket) => socket.end(frame("0", "")));
  const times: number[] = [];
  for (let i = 0; i < 20; i++) times.push((await run("wal-archive", "pg_wal/000000010000000000000001")).tookMs);
  times.sort((a, b) => a - b);
  expect(times[10]).toBeLessThan(30); // most of it is the test's own fork of a large process
});

it("writes the message as one JSON line to the log destination, at the level of the outcome or of the answer", async () => {
  const answers = [
    ["1", 'no "luck"\nat all'],
    ["0", "archived"],
    ["1", "not there yet", "debug"],
  ];
  await listen((_fields, socket) => socket.end(frame(...(answers.shift() ?? []))));
  const log = join(root, "destination");
  for (let i = 0; i < 3; i++) expect((await run("wal-archive", `--log-destination=${log}`, "x")).stderr).toBe("");
  const lines = (await readFile(log, "utf8")).trim().split("\n");
  const records = lines.map((line) => JSON.parse(line) as Record<string, string>);
  expect(records.map(({ level, msg, logger, logging_pod }) => ({ level, msg, logger, logging_pod }))).toEqual([
    { level: "error", msg: 'no "luck"\nat all', logger: "wal-archive", logging_pod: "pod-1" },
    { level: "info", msg: "archived", logger: "wal-archive", logging_pod: "pod-1" },
    { level: "debug", msg: "not there yet", logger: "wal-archive", logging_pod: "pod-1" },
  ]);
  expect(records[0]?.["ts"]).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$/);
});

it("logs what the resident server calls a warning as one, though the command fails", async () => {
  const refusal = { code: 1, message: "switchover in progress, refusing archiving", level: "warning" } as const;
  const archive = async (name: string) => (name === "x" ? refusal : { code: 1, message: "the store is away" });
  const resident = new WalServer({ archive, restore: async () => refusal }, captureLogs().logger);
  await resident.listen(createFiles(), join(root, "ipc", "wal.sock"));
  const [refused, failed] = [await run("wal-archive", "x"), await run("wal-archive", "y")];
  await resident.close();
  expect([refused.code, failed.code]).toEqual([1, 1]);
  expect(JSON.parse(refused.stderr)).toMatchObject({ level: "warning", msg: refusal.message });
  expect(JSON.parse(failed.stderr)).toMatchObject({ level: "error" });
});

it("cuts a message that is too long inside of the limits of JSON and UTF-8", async () => {
  await listen((_fields, socket) => socket.end(frame("1", "ü\u0001".repeat(5000))));
  const { stderr } = await run("wal-restore", "--log-field-level=severity", "a", "b");
  const record = JSON.parse(stderr) as Record<string, string>;
  expect(record["severity"]).toBe("error");
  expect("ü\u0001".repeat(5000).startsWith(record["msg"] ?? "?")).toBe(true);
  expect(record["msg"]?.length).toBeGreaterThan(500);
});

it("waits for a runtime that is late", async () => {
  const outcome = run("wal-archive", "x");
  await sleep(1500);
  await listen((_fields, socket) => socket.end(frame("0", "")));
  expect((await outcome).code).toBe(0);
});

it("fails with 1 after ten seconds without a runtime", async () => {
  const outcome = await run("wal-restore", "x", "y");
  expect(outcome.code).toBe(1);
  expect(outcome.stderr).toContain("cannot reach the instance manager");
  expect(outcome.tookMs).toBeGreaterThan(9900);
  expect(outcome.tookMs).toBeLessThan(12_000);
});

it("asks again when the runtime goes away in the middle of a request", async () => {
  let requests = 0;
  await listen((_fields, socket) => {
    requests++;
    if (requests === 1) socket.destroy();
    else socket.end(frame("0", ""));
  });
  expect((await run("wal-archive", "x")).code).toBe(0);
  expect(requests).toBe(2);
});

it("fails with 1 when it never gets a whole answer, or none that is an exit code", async () => {
  const answers = [frame("0", "abc").subarray(0, 6), Buffer.alloc(0), Buffer.from([0, 0, 0]), frame("ok")];
  await listen((_fields, socket) => socket.end(answers.shift() ?? Buffer.alloc(0)));
  const silent = await run("wal-restore", "x", "y");
  expect(silent.code).toBe(1);
  expect(silent.stderr).toContain("without an answer");
  const odd = await run("wal-restore", "x", "y");
  expect(odd.code).toBe(1);
  expect(odd.stderr).toContain("not an exit code");
});

it.each([["wal-archive"], ["wal-archive", "a", "b"], ["wal-restore", "a"], ["wal-restore", "a", "b", "c"]])(
  "refuses a wrong number of arguments: %s %s %s %s",
  async (...args) => {
    const outcome = await run(...args.filter((arg) => arg !== undefined));
    expect(outcome.code).toBe(1);
    expect(outcome.stderr).toContain("usage: ");
  },
);

it("never waits for a log destination: a FIFO nobody reads and that is full", async () => {
  const fifo = join(root, "fifo");
  await listen((_fields, socket) => socket.end(frame("1", "m".repeat(2000))));
  await new Promise((resolve) => spawn("mkfifo", [fifo]).on("close", resolve));
  const holder = spawn("sh", ["-c", `exec 9<>${fifo}; sleep 30`]);
  await sleep(200);
  for (let i = 0; i < 40; i++) expect((await run("wal-archive", "--log-destination", fifo, "x")).code).toBe(1);
  holder.kill();
});
