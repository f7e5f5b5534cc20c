import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createPluginServer } from "../../../src/plugin/framework/create-plugin-server.ts";
import { selfSigned } from "./certificates.ts";
import { createLab, deferred, type Lab, pluginName, serverName } from "./lab.ts";
import { cluster } from "./recording-plugin.ts";

let lab: Lab;
beforeEach(async () => {
  lab = await createLab();
});
afterEach(() => lab.end());

const identity = { name: pluginName, version: "1" };

/** An archive call that ends when the test says so. */
function slowArchive() {
  const started = deferred();
  const goOn = deferred();
  const archive = async () => {
    started.resolve();
    await goOn.promise;
  };
  return { archive, started: started.promise, goOn: goOn.resolve };
}

describe("renewed certificates", () => {
  it("are used by both sides without cutting a call", async () => {
    const slow = slowArchive();
    const { server, endpoint } = await lab.start("tls", { identity, services: { wal: { archive: slow.archive } } });
    const pool = lab.pool(endpoint);
    const before = await pool.load([pluginName]);
    const running = before.get(pluginName)?.wal.archive({ cluster, sourceFileName: "/p/1" });
    await slow.started;

    const [newServer, newClient] = await Promise.all([selfSigned(serverName), selfSigned("operator")]);
    await lab.writeFiles({ server: newServer, client: newClient });
    await server.reload();
    const renewed = lab.tlsEndpoint(server.address, {
      serverRoots: newServer.cert,
      clientCertificate: newClient.cert,
      clientKey: newClient.key,
    });
    expect(pool.replaceEndpoints("services", [renewed])).toMatchObject({ changed: [pluginName] });
    const after = await pool.load([pluginName]);
    expect(after.plugins).toHaveLength(1);
    // The old certificates are of no use for a new connection.
    await expect(lab.pool(endpoint).load([pluginName], { budgetMs: 1_000 })).rejects.toMatchObject({
      kind: "unavailable",
    });

    slow.goOn();
    await expect(running).resolves.toBeUndefined();
    // The old connection serves its borrower until it is given back.
    await before.get(pluginName)?.wal.archive({ cluster, sourceFileName: "/p/2" });
    before.release();
    await expect(before.get(pluginName)?.wal.archive({ cluster, sourceFileName: "/p/3" })).rejects.toMatchObject({
      kind: "unavailable",
    });
    after.release();
  });

  it("are noticed by the server on its own", async () => {
    const files = await lab.writeFiles();
    const server = await createPluginServer({
      identity,
      services: {},
      listen: { kind: "tls", address: "127.0.0.1:0", reloadMs: 50, ...files },
      logger: lab.logs.logger,
    });
    try {
      const renewed = await selfSigned(serverName);
      await lab.writeFiles({ server: renewed });
      await expect.poll(() => lab.logs.messages("info")).toContain("Certificates reloaded");
      const endpoint = lab.tlsEndpoint(server.address, { serverRoots: renewed.cert });
      expect((await lab.load(endpoint)).name).toBe(pluginName);
    } finally {
      await server.stop({ graceMs: 0 });
    }
  });

  it("that do not belong together leave the old ones in use", async () => {
    const { server, endpoint } = await lab.start("tls", { identity, services: {} });
    const other = await selfSigned(serverName);
    await lab.writeFiles({ server: { cert: other.cert, key: lab.server.key } });
    await server.reload();
    expect(lab.logs.messages("warning")).toEqual(["Certificates cannot be reloaded, the previous ones stay in use"]);
    expect((await lab.load(endpoint)).name).toBe(pluginName);
  });
});

describe("an unchanged endpoint", () => {
  it("keeps its connection and its identity", async () => {
    let asked = 0;
    const { endpoint } = await lab.start("tls", {
      identity,
      services: {},
      interceptors: [
        (context, next) => {
          if (context.label === "Identity.GetPluginMetadata") asked++;
          return next();
        },
      ],
    });
    const pool = lab.pool(endpoint);
    (await pool.load([pluginName])).release();
    expect(pool.replaceEndpoints("services", [{ ...endpoint }])).toEqual({
      added: [],
      changed: [],
      removed: [],
      rejected: [],
    });
    (await pool.load([pluginName])).release();
    expect(asked).toBe(1);
    pool.refresh(pluginName);
    (await pool.load([pluginName])).release();
    expect(asked).toBe(2);
  });
});
