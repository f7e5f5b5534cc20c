import { rm, stat, writeFile } from "node:fs/promises";
import { connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createPluginServer } from "../../../src/plugin/framework/create-plugin-server.ts";
import { createLab, deferred, type Lab, pluginName } from "./lab.ts";
import { cluster } from "./recording-plugin.ts";

let lab: Lab;
beforeEach(async () => {
  lab = await createLab();
});
afterEach(() => lab.end());

const start = (version: string, folder = join(lab.folder, "plugins")) =>
  createPluginServer({
    identity: { name: pluginName, version },
    services: { wal: { archive: () => undefined } },
    listen: { kind: "socket", folder },
    logger: lab.logs.logger,
  });

describe("a folder of sockets", () => {
  it("is scanned for plugins; other files and a missing folder are nothing", async () => {
    const folder = join(lab.folder, "plugins");
    const pool = lab.pool();
    expect(await pool.scanSockets(folder)).toMatchObject({ added: [] });
    const server = await start("1");
    await writeFile(join(folder, "notes.txt"), "");
    expect(await pool.scanSockets(folder)).toMatchObject({ added: [pluginName] });
    expect(lab.logs.records).toContainEqual({
      level: "info",
      message: "Registered plugin",
      fields: { pluginName },
    });
    await server.stop({ graceMs: 0 });
    expect(await pool.scanSockets(folder)).toMatchObject({ removed: [pluginName] });
    expect(pool.names()).toEqual([]);
  });

  it("does not take over the name of a plugin Service", async () => {
    const server = await start("1");
    const pool = lab.pool(lab.tlsEndpoint("127.0.0.1:1"));
    expect(await pool.scanSockets(join(lab.folder, "plugins"))).toMatchObject({ rejected: [pluginName] });
    await server.stop({ graceMs: 0 });
  });
});

describe("a socket file", () => {
  it("that was replaced leads to the new server, though the old one still runs", async () => {
    const first = await start("1");
    const pool = lab.pool({ kind: "socket", name: pluginName, path: first.address });
    const before = await pool.load([pluginName]);
    expect(before.plugins[0]?.metadata.version).toBe("1");

    const second = await start("2");
    const after = await pool.load([pluginName]);
    expect(after.plugins[0]?.metadata.version).toBe("2");
    await before.plugins[0]?.wal.archive({ cluster, sourceFileName: "/p/1" });
    before.release();
    after.release();
    await first.stop({ graceMs: 1_000 });
    await second.stop({ graceMs: 1_000 });
  });

  it("of a dead server is replaced, anything else is left alone", async () => {
    const folder = join(lab.folder, "plugins");
    const first = await start("1");
    const second = await start("2");
    expect(second.address).toBe(first.address);
    await second.stop({ graceMs: 0 });
    await first.stop({ graceMs: 0 });
    await rm(first.address, { force: true });
    await writeFile(join(folder, pluginName), "precious");
    await expect(start("3")).rejects.toThrow("exists and is no socket");
    expect((await stat(join(folder, pluginName))).size).toBe(8);
  });
});

describe("connections", () => {
  let relay: Server;
  let open: Set<Socket>;
  let path: string;

  beforeEach(async () => {
    const server = await start("1");
    path = join(lab.folder, "relay");
    open = new Set();
    relay = createServer((socket) => {
      const onward = connect(server.address);
      open.add(socket);
      socket.on("close", () => open.delete(socket));
      socket.pipe(onward).pipe(socket);
      for (const end of [socket, onward]) end.on("error", () => undefined);
    });
    await new Promise<void>((resolve) => relay.listen(path, resolve));
  });
  afterEach(async () => {
    const closed = new Promise((resolve) => relay.close(resolve));
    for (const socket of open) socket.destroy();
    await closed;
  });

  it("are shared while they last, and closed with the pool", async () => {
    const pool = lab.pool({ kind: "socket", name: pluginName, path });
    const sessions = await Promise.all([1, 2, 3].map(() => pool.load([pluginName])));
    expect(open.size).toBe(1);
    for (const session of sessions) session.release();
    expect(open.size).toBe(1);
    await pool.close();
    await expect.poll(() => open.size).toBe(0);
  });

  it("are closed when the endpoint is forgotten", async () => {
    const pool = lab.pool({ kind: "socket", name: pluginName, path });
    const session = await pool.load([pluginName]);
    pool.replaceEndpoints("services", []);
    await session.plugins[0]?.wal.archive({ cluster, sourceFileName: "/p/1" });
    expect(open.size).toBe(1);
    session.release();
    await expect.poll(() => open.size).toBe(0);
  });

  it("are closed after the grace although a session was never given back", async () => {
    const pool = lab.pool({ kind: "socket", name: pluginName, path });
    await pool.load([pluginName]);
    await pool.close({ graceMs: 50 });
    await expect.poll(() => open.size).toBe(0);
  });

  it("that break are made again, and the identity is asked again", async () => {
    const pool = lab.pool({ kind: "socket", name: pluginName, path });
    const before = await pool.load([pluginName]);
    for (const socket of open) socket.destroy();
    await expect.poll(() => open.size).toBe(0);
    const after = await pool.load([pluginName]);
    expect(after.plugins[0]).not.toBe(before.plugins[0]);
    before.release();
    after.release();
  });
});

describe("a server that stops", () => {
  it("lets running calls end and refuses new ones", async () => {
    const goOn = deferred();
    const started = deferred();
    const archive = async () => {
      started.resolve();
      await goOn.promise;
    };
    const identity = { name: pluginName, version: "1" };
    const { server, endpoint } = await lab.start("socket", { identity, services: { wal: { archive } } });
    const plugin = await lab.load(endpoint);
    const running = plugin.wal.archive({ cluster, sourceFileName: "/p/1" });
    await started.promise;
    const stopping = server.stop({ graceMs: 10_000 });
    await expect(plugin.wal.archive({ cluster, sourceFileName: "/p/2" })).rejects.toMatchObject({
      kind: "unavailable",
    });
    goOn.resolve();
    await expect(running).resolves.toBeUndefined();
    await stopping;
  });

  it("cuts calls that outlast the grace", async () => {
    const archive = () => new Promise<void>(() => undefined);
    const identity = { name: pluginName, version: "1" };
    const { server, endpoint } = await lab.start("socket", { identity, services: { wal: { archive } } });
    const plugin = await lab.load(endpoint);
    const running = plugin.wal.archive({ cluster, sourceFileName: "/p/1" });
    const failing = expect(running).rejects.toMatchObject({ kind: "unavailable" });
    await server.stop({ graceMs: 50 });
    await failing;
  });
});
