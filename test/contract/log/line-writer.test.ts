import { execFile } from "node:child_process";
import { closeSync, constants, openSync, readFileSync, readSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createLineWriter } from "../../../src/instance/log/line-writer.ts";

const run = promisify(execFile);
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "writer-"));
});

afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

describe("line writer", () => {
  it("writes lines in order and whole, also when they come at the end", async () => {
    const path = join(folder, "log");
    const writer = createLineWriter(openSync(path, "w"));
    for (let at = 0; at < 1000; at += 1) void writer.write(`line ${at}`);
    await sleep(50);
    void writer.write("last");
    writer.flush();
    const expected = [...Array.from({ length: 1000 }, (_, at) => `line ${at}`), "last", ""];
    expect(readFileSync(path, "utf8").split("\n")).toEqual(expected);
  });

  it("asks to wait while nobody reads, loses nothing then, and counts what was forced on it", async () => {
    const path = join(folder, "fifo");
    await run("mkfifo", [path]);
    const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const writer = createLineWriter(openSync(path, constants.O_WRONLY | constants.O_NONBLOCK));
    const line = "x".repeat(999);
    let room: Promise<void> | undefined;
    let written = 0;
    while (!room && written < 10_000) {
      room = writer.write(line);
      written += 1;
    }
    expect(written).toBeLessThan(1000);
    let free = false;
    const waited = room?.then(() => {
      free = true;
    });
    await sleep(100);
    expect(free).toBe(false);
    let forced = 0;
    while (forced < 12_000) {
      void writer.write(line);
      forced += 1;
    }
    const received: Buffer[] = [];
    const block = Buffer.alloc(1 << 20);
    // One read that finds nothing after the last write has ended.
    for (let ended = false; !ended; ) {
      const last = free;
      try {
        received.push(Buffer.from(block.subarray(0, readSync(reader, block))));
      } catch {
        ended = last;
        await sleep(1);
      }
    }
    await waited;
    closeSync(reader);
    const lines = Buffer.concat(received).toString().split("\n").slice(0, -1);
    const dropped = lines.flatMap((text) => (text.startsWith("{") ? [JSON.parse(text) as { dropped: number }] : []));
    expect(dropped).toHaveLength(1);
    expect(lines.filter((text) => text === line)).toHaveLength(written + forced - (dropped[0]?.dropped ?? 0));
    expect(lines).toHaveLength(written + forced - (dropped[0]?.dropped ?? 0) + 1);
  });

  it("goes on without the lines when nobody reads for long, counts them, and tells once somebody reads", async () => {
    const path = join(folder, "fifo");
    await run("mkfifo", [path]);
    const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    // A blocking descriptor, as a container gets it.
    const writer = createLineWriter(openSync(path, constants.O_WRONLY), { stallMs: 200 });
    const line = "x".repeat(999);
    let room: Promise<void> | undefined;
    let written = 0;
    while (!room) {
      room = writer.write(line);
      written += 1;
    }
    await room;
    for (let more = 0; more < 5_000; more += 1) expect(writer.write(line)).toBeUndefined();
    const started = performance.now();
    const received: string[] = [];
    const block = Buffer.alloc(1 << 20);
    while (!received.join("").includes("dropped") && performance.now() - started < 5_000) {
      try {
        received.push(block.toString("utf8", 0, readSync(reader, block)));
      } catch {
        await sleep(1);
      }
    }
    closeSync(reader);
    const lines = received.join("").split("\n");
    const note = lines.find((text) => text.startsWith("{")) ?? "{}";
    const { dropped } = JSON.parse(note) as { dropped: number };
    expect(dropped).toBeGreaterThan(4_000);
    expect(lines.indexOf(note)).toBe(written + 5_000 - dropped);
    expect(writer.write(line)).toBeUndefined();
  });

  it("ends its last writing in time when nobody reads", async () => {
    const path = join(folder, "fifo");
    await run("mkfifo", [path]);
    const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const writer = createLineWriter(openSync(path, constants.O_WRONLY), { flushMs: 100 });
    for (let at = 0; at < 200; at += 1) void writer.write("x".repeat(999));
    const started = performance.now();
    writer.flush();
    expect(performance.now() - started).toBeLessThan(1_000);
    closeSync(reader);
  });
});
