// Go peers of the protocol's version 0.5, which CloudNativePG 1.30 speaks: three fields of 0.6 are unknown to them.
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { buildGoPeer, type GoPeer, type GoProgram, startGoPeer } from "./go-peer.ts";
import { createLab, type Lab, pluginName } from "./lab.ts";
import { cluster, recordingPlugin } from "./recording-plugin.ts";

let program: GoProgram;
let lab: Lab;
let peer: GoPeer | undefined;
beforeAll(async () => {
  program = await buildGoPeer("0.5");
});
afterAll(() => program.remove());
beforeEach(async () => {
  lab = await createLab();
});
afterEach(async () => {
  await lab.end();
  await peer?.stop();
});

const own = { metadata: { name: "c" }, spec: {} };
const clusterDefinition = Buffer.from(JSON.stringify(own)).toString("base64");

it("an older client asks us as ever, and what it cannot say is unsaid, not false", async () => {
  const seen: [string, unknown][] = [];
  const { server } = await lab.start("socket", recordingPlugin(seen));
  const client = startGoPeer(program, "client", { address: `unix://${server.address}` });
  peer = client;
  const ask = (method: string, request: object) =>
    client.ask<{ response?: object; message?: string }>({ method, request });
  const archive = { clusterDefinition, sourceFileName: "/p/1" };
  expect(await ask("/cnpgi.wal.v1.WAL/Archive", archive)).toMatchObject({ response: {} });
  const restore = { clusterDefinition, sourceWalName: "W", destinationFileName: "/d" };
  expect(await ask("/cnpgi.wal.v1.WAL/Restore", restore)).toMatchObject({ response: {} });
  const job = await ask("/cnpgi.wal.v1.RestoreJobHooks/Restore", { clusterDefinition });
  expect(job).toMatchObject({ response: { restoreConfig: "x = 1\n", envs: ["A=B"] } });
  const requests = new Map(seen);
  expect(requests.get("WAL.Archive")).toEqual({ cluster: own, sourceFileName: "/p/1", parameters: {} });
  expect(requests.get("WAL.Restore")).toMatchObject({ sourceWalName: "W", mode: "recovery" });
  expect(requests.get("RestoreJobHooks.Restore")).toEqual({ cluster: own });
  // It is the older one indeed.
  const newer = await ask("/cnpgi.wal.v1.WAL/Archive", { ...archive, checkEmptyWalArchive: true });
  expect(newer.message).toContain('unknown field "checkEmptyWalArchive"');
});

it("an older server passes over what we say beyond its words", async () => {
  const services = ["WAL_SERVICE", "RESTORE_JOB"].map((name) => ({ service: { type: `TYPE_${name}` } }));
  const answers = {
    "/cnpgi.identity.v1.Identity/GetPluginMetadata": { response: { name: pluginName, version: "1" } },
    "/cnpgi.identity.v1.Identity/GetPluginCapabilities": { response: { capabilities: services } },
    "/cnpgi.identity.v1.Identity/Probe": { response: { ready: true } },
    "/cnpgi.wal.v1.WAL/GetCapabilities": { response: { capabilities: [1, 2].map((type) => ({ rpc: { type } })) } },
    "/cnpgi.wal.v1.RestoreJobHooks/GetCapabilities": { response: { capabilities: [{ kind: "KIND_RESTORE" }] } },
    "/cnpgi.wal.v1.WAL/Archive": { response: {} },
    "/cnpgi.wal.v1.WAL/Restore": { response: {} },
    "/cnpgi.wal.v1.RestoreJobHooks/Restore": { response: { restoreConfig: "x" } },
  };
  const path = join(lab.folder, pluginName);
  const go = startGoPeer(program, "server", { address: `unix://${path}`, answers: JSON.stringify(answers) });
  peer = go;
  await go.next();
  const plugin = await lab.load({ kind: "socket", name: pluginName, path });
  for (let count = 0; count < 5; count++) await go.next();
  const seen = async () => (await go.next<{ request: object }>()).request;
  await plugin.wal.archive({ cluster, sourceFileName: "/p/1", checkEmptyWalArchive: false });
  expect(Object.keys(await seen())).toEqual(["clusterDefinition", "sourceFileName"]);
  await plugin.wal.restore({ cluster, sourceWalName: "W", destinationFileName: "/d", mode: "rewind" });
  expect(Object.keys(await seen())).toEqual(["clusterDefinition", "sourceWalName", "destinationFileName"]);
  expect(await plugin.restoreJob.restore({ cluster, checkEmptyWalArchive: true })).toMatchObject({
    restoreConfig: "x",
  });
  expect(Object.keys(await seen())).toEqual(["clusterDefinition"]);
});
