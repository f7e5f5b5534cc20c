import { execFileSync, spawn } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createDescriptorDestination, openLogDestination } from "../../../src/runtime/log-destination.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "cnpg-ts-log-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("log destination", () => {
  it("appends lines to a file in order, in the background and at the end", async () => {
    const path = join(folder, "manager.log");
    const destination = openLogDestination(path);
    for (let i = 0; i < 1000; i++) destination.write(`line ${i}`);
    await systemClock.sleep(100);
    destination.write("last words");
    destination.flush();
    const expected = [...Array.from({ length: 1000 }, (_, i) => `line ${i}`), "last words", ""].join("\n");
    expect(readFileSync(path, "utf8")).toBe(expected);
  });

  it("never blocks on a reader that stands still, counts what it drops, and goes on when the reader does", async () => {
    const fifo = join(folder, "fifo");
    execFileSync("mkfifo", [fifo]);
    // Reads nothing for a second, then everything.
    const reader = spawn("sh", ["-c", `exec 3<"${fifo}"; sleep 1; cat <&3`], { stdio: ["ignore", "pipe", "ignore"] });
    let text = "";
    reader.stdout.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
    const fd = openSync(fifo, "w");
    const destination = createDescriptorDestination(fd, 100_000);
    const began = performance.now();
    for (let i = 0; i < 50; i++) {
      for (let j = 0; j < 20; j++) destination.write(`${i}-${j} ${"x".repeat(1000)}`);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(performance.now() - began).toBeLessThan(900);
    await systemClock.sleep(1500);
    destination.write("after");
    await systemClock.sleep(100);
    destination.flush();
    closeSync(fd);
    await new Promise((resolve) => reader.on("close", resolve));
    const lines = text.trimEnd().split("\n");
    expect(lines[0]).toMatch(/^0-0 /);
    expect(lines.at(-1)).toBe("after");
    const notices = lines.filter((line) => line.startsWith("{"));
    const dropped = notices.reduce((sum, line) => sum + (JSON.parse(line) as { dropped: number }).dropped, 0);
    expect(dropped).toBeGreaterThan(0);
    expect(lines.filter((line) => line.includes("xxx")).length + dropped).toBe(1000);
  });
});
