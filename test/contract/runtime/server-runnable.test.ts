import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { createServerRunnable } from "../../../src/runtime/server-runnable.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";

function aServer(options: { answerAfterMs?: number; drainMs?: number; port?: number } = {}) {
  const server = createServer((_request, response) => {
    setTimeout(() => response.end("ok"), options.answerAfterMs ?? 0);
  });
  const runnable = createServerRunnable({
    name: "web",
    server,
    port: options.port ?? 0,
    host: "127.0.0.1",
    clock: systemClock,
    ...(options.drainMs === undefined ? {} : { drainMs: options.drainMs }),
  });
  const stop = new AbortController();
  return { runnable, stop, port: () => (server.address() as AddressInfo).port };
}

describe("server as a part of a program", () => {
  it("is ready once it listens, and lets requests under way end when stopped", async () => {
    const { runnable, stop, port } = aServer({ answerAfterMs: 300 });
    const running = runnable.run(stop.signal);
    await runnable.ready?.(stop.signal);
    const url = `http://127.0.0.1:${port()}/`;
    const answer = fetch(url).then((response) => response.text());
    await systemClock.sleep(100);
    stop.abort();
    expect(await answer).toBe("ok");
    await running;
    await expect(fetch(url)).rejects.toThrow();
  });

  it("cuts off what does not end in time", async () => {
    const { runnable, stop, port } = aServer({ answerAfterMs: 60_000, drainMs: 200 });
    const running = runnable.run(stop.signal);
    await runnable.ready?.(stop.signal);
    const answer = expect(fetch(`http://127.0.0.1:${port()}/`)).rejects.toThrow();
    await systemClock.sleep(100);
    const began = performance.now();
    stop.abort();
    await running;
    expect(performance.now() - began).toBeLessThan(2_000);
    await answer;
  });

  it("fails when the port is taken", async () => {
    const first = aServer();
    const running = first.runnable.run(first.stop.signal);
    await first.runnable.ready?.(first.stop.signal);
    const second = aServer({ port: first.port() });
    const ready = expect(second.runnable.ready?.(second.stop.signal)).rejects.toMatchObject({ code: "EADDRINUSE" });
    await expect(second.runnable.run(second.stop.signal)).rejects.toMatchObject({ code: "EADDRINUSE" });
    await ready;
    first.stop.abort();
    await running;
  });
});
