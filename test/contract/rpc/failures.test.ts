import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { StatusError } from "../../../src/plugin/framework/status-error.ts";
import type { PluginError } from "../../../src/ports/plugin.ts";
import { createLab, type Lab, pluginName, type Transport } from "./lab.ts";
import { cluster, recordingPlugin } from "./recording-plugin.ts";

let lab: Lab;
beforeEach(async () => {
  lab = await createLab();
});
afterEach(() => lab.end());

function caught(promise: Promise<unknown>): Promise<PluginError> {
  return promise.then(
    () => expect.fail("the call succeeded"),
    (error: PluginError) => error,
  );
}

const identity = { name: pluginName, version: "1" };
const archiveRequest = { cluster, sourceFileName: "/p/1" };

describe.each<Transport>(["socket", "tls"])("over %s", (transport) => {
  it("a call ends at its deadline, and the handler is told", async () => {
    let told: AbortSignal | undefined;
    const archive = (_: unknown, { signal }: { signal: AbortSignal }) => {
      told = signal;
      return new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    };
    const { endpoint } = await lab.start(transport, { identity, services: { wal: { archive } } });
    const plugin = await lab.load(endpoint);
    const error = await caught(plugin.wal.archive(archiveRequest, { deadlineMs: 100 }));
    expect(error).toMatchObject({ kind: "unavailable", status: "DEADLINE_EXCEEDED", operation: "WAL.Archive" });
    expect(error.message).toContain("no answer within 100 ms");
    await expect.poll(() => told?.aborted).toBe(true);
  });

  it("a call ends when the caller gives up", async () => {
    const archive = () => new Promise<void>(() => undefined);
    const { endpoint } = await lab.start(transport, { identity, services: { wal: { archive } } });
    const plugin = await lab.load(endpoint);
    const error = await caught(plugin.wal.archive(archiveRequest, { signal: AbortSignal.timeout(50) }));
    expect(error).toMatchObject({ kind: "unavailable", status: "CANCELLED" });
  });

  it.each([
    [new StatusError("NOT_FOUND", "no such segment"), "notFound", "NOT_FOUND"],
    [new StatusError("OUT_OF_RANGE", "end of WAL"), "notFound", "OUT_OF_RANGE"],
    [new StatusError("FAILED_PRECONDITION", "the archive is not empty"), "refused", "FAILED_PRECONDITION"],
    [new StatusError("UNAVAILABLE", "the store answers 503"), "unavailable", "UNAVAILABLE"],
    [new Error("boom"), "unavailable", "UNKNOWN"],
  ])("a handler's %s reaches the client", async (thrown, kind, status) => {
    const archive = () => {
      throw thrown;
    };
    const { endpoint } = await lab.start(transport, { identity, services: { wal: { archive } } });
    const error = await caught((await lab.load(endpoint)).wal.archive(archiveRequest));
    expect(error).toMatchObject({ kind, status, plugin: pluginName });
    expect(error.message).toContain(thrown.message);
  });

  it("a killed server ends the call at once, and the next load finds its successor", async () => {
    const { child, address } = await startChild(transport);
    const endpoint =
      transport === "socket"
        ? ({ kind: "socket", name: pluginName, path: address } as const)
        : lab.tlsEndpoint(address);
    const pool = lab.pool(endpoint);
    const session = await pool.load([pluginName]);
    const archiving = session.get(pluginName)?.wal.archive(archiveRequest) ?? Promise.resolve();
    const failing = caught(archiving);
    await once(child.stdout ?? child, "data");
    child.kill("SIGKILL");
    expect(await failing).toMatchObject({ kind: "unavailable", status: "UNAVAILABLE" });
    session.release();

    const next = await startChild(transport, address);
    const again = await pool.load([pluginName]);
    expect(again.plugins[0]?.metadata.version).toBe(String(next.child.pid));
    again.release();
    next.child.kill("SIGKILL");
  });
});

describe("the pool", () => {
  it("names what it does not know", async () => {
    const error = await caught(lab.pool().load(["nobody.example.com"]));
    expect(error).toMatchObject({ kind: "unknownPlugin", plugin: "nobody.example.com", retryable: true });
  });

  it("keeps its budget when nobody answers", async () => {
    // An address of the documentation range: packets to it get lost.
    const endpoint = lab.tlsEndpoint("192.0.2.1:9090");
    const started = performance.now();
    const error = await caught(lab.pool(endpoint).load([pluginName], { budgetMs: 300 }));
    expect(error).toMatchObject({ kind: "unavailable", plugin: pluginName });
    expect(performance.now() - started).toBeLessThan(2_000);
  });

  it("gives all loans back when one plugin of several fails", async () => {
    const { server, endpoint } = await lab.start("socket", recordingPlugin([]));
    const missing = { kind: "socket", name: "missing.example.com", path: join(lab.folder, "missing") } as const;
    const pool = lab.pool(endpoint, missing);
    const error = await caught(pool.load([pluginName, missing.name], { budgetMs: 500 }));
    expect(error.message).toContain("the socket file does not exist");
    const started = performance.now();
    await pool.close({ graceMs: 5_000 });
    expect(performance.now() - started).toBeLessThan(1_000);
    await server.stop({ graceMs: 0 });
  });

  it("waits for a plugin that is not ready yet", async () => {
    let probes = 0;
    const ready = () => ++probes > 2;
    const { endpoint } = await lab.start("socket", { identity: { ...identity, ready }, services: {} });
    const session = await lab.pool(endpoint).load([pluginName]);
    expect(session.plugins).toHaveLength(1);
    expect(probes).toBe(3);
    session.release();
  });

  it("refuses a plugin that calls itself otherwise", async () => {
    const { endpoint } = await lab.start("socket", { identity, services: {} });
    const error = await caught(lab.pool({ ...endpoint, name: "other.example.com" }).load(["other.example.com"]));
    expect(error).toMatchObject({ kind: "protocol", plugin: "other.example.com" });
    expect(error.message).toContain(`calls itself ${pluginName}`);
  });

  it("does not send what a plugin does not offer", async () => {
    const { endpoint } = await lab.start("socket", { identity, services: { wal: { archive: () => undefined } } });
    const plugin = await lab.load(endpoint);
    expect(await caught(plugin.wal.status(cluster))).toMatchObject({ kind: "refused", operation: "WAL.Status" });
    expect(await caught(plugin.backup.backup({ cluster, backup: {} }))).toMatchObject({ kind: "refused" });
    await plugin.wal.archive(archiveRequest);
  });
});

/** A server of its own process, whose version is its process id and whose archive call never ends. */
async function startChild(transport: Transport, address?: string): Promise<{ child: ChildProcess; address: string }> {
  const listen =
    transport === "socket"
      ? { kind: "socket", folder: join(lab.folder, "child") }
      : { kind: "tls", address: address ?? "127.0.0.1:0", ...(await lab.writeFiles()) };
  const program = join(import.meta.dirname, "endless-plugin.ts");
  const child = spawn(process.execPath, ["--import", "tsx", program, JSON.stringify(listen)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  return { child, address: line.toString().trim() };
}
