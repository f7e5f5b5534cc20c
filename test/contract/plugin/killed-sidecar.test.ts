import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { waitFor } from "../../../local/process/wait.ts";
import { listAll } from "../../../src/ports/object-store.ts";
import { limitMemory } from "../../support/memory-limit.ts";
import { segments } from "../../support/wal-folder.ts";
import { makeSegment } from "../../support/wal-segment.ts";
import { type Fault, type FaultyS3, startFaultyS3 } from "../store/faulty-s3.ts";
import { bucket, openSidecarLab, type SidecarLab, sidecarEnvironment, writeSegment } from "./sidecar-lab.ts";
import { buildPluginProgram, type PluginProgram, type SidecarProcess, spawnSidecar } from "./sidecar-process.ts";

const names = segments(1, 4);
const [first = "", second = ""] = names;
let lab: SidecarLab;
let proxy: FaultyS3;
let program: PluginProgram;
let folder: string;
let sidecar: SidecarProcess | undefined;

beforeAll(async () => {
  [lab, program] = await Promise.all([openSidecarLab(), buildPluginProgram()]);
  proxy = await startFaultyS3(lab.s3.port);
  await lab.useStore({ endpointURL: proxy.endpoint, wal: { compression: "zstd", maxParallel: 2 } });
  folder = await mkdtemp(join(tmpdir(), "killed-sidecar-"));
  await mkdir(join(folder, "pgdata/pg_wal/archive_status"), { recursive: true });
}, 240_000);
afterAll(async () => {
  await sidecar?.kill();
  await proxy?.stop();
  await lab?.stop();
  program?.remove();
  await rm(folder, { recursive: true, force: true });
});

const wal = () => join(folder, "pgdata/pg_wal");
const marker = () => join(folder, "pgdata/.check-empty-wal-archive");
const start = () => spawnSidecar(program, lab.account.kubeconfig, sidecarEnvironment(folder), join(folder, "plugins"));
const archive = (name: string) =>
  sidecar?.plugin.wal.archive({ cluster: lab.cluster(), sourceFileName: join(wal(), name) });
const isPut = (method: string | undefined, url: string | undefined, name: string) =>
  method === "PUT" && (url ?? "").includes(name);

/** Lets the store have the object and the sidecar never hear of it; or lets the body go nowhere. */
function faultOn(name: string, kind: "passThenCut" | "swallow", reached: () => void): Fault {
  return ({ method, url }) => {
    if (!isPut(method, url, name)) return "pass";
    reached();
    return kind === "swallow" ? "answered" : "passThenCut";
  };
}

async function dieAt(name: string, kind: "passThenCut" | "swallow"): Promise<void> {
  let reached = 0;
  proxy.fault = faultOn(name, kind, () => {
    reached += 1;
  });
  const failed = archive(name)?.then(
    () => false,
    () => true,
  );
  await waitFor("the upload is under way", async () => reached > 0, { timeoutMs: 60_000 });
  await sidecar?.kill();
  proxy.fault = () => "pass";
  expect(await failed).toBe(true);
  sidecar = await start();
}

/** The archive holds these segments and no others, each once and with its own bytes. */
async function checkArchive(expected: readonly string[]): Promise<void> {
  const { objects } = await listAll(lab.store, "clusters/orders/wals/");
  expect(objects.map(({ key }) => key.slice(key.lastIndexOf("/") + 1))).toEqual(expected.map((name) => `${name}.zst`));
  for (const name of expected) {
    const target = join(folder, `restored-${name}`);
    const tool = await lab.barman.run("wal-restore", [`s3://${bucket}/clusters/`, "orders", name, target]);
    expect(tool).toMatchObject({ code: 0 });
    expect((await readFile(target)).equals(makeSegment(name))).toBe(true);
  }
}

test("what a killed sidecar had under way is archived once by the next, whatever the store had of it", async () => {
  await writeFile(marker(), "");
  for (const name of names) await writeSegment(wal(), name);
  sidecar = await start();
  // The first upload is the one that must find the archive empty: its own bytes are nothing foreign.
  await dieAt(first, "passThenCut");
  expect(existsSync(marker())).toBe(true);
  await archive(first);
  expect(existsSync(marker())).toBe(false);
  await dieAt(second, "swallow");
  for (const name of names.slice(1)) await archive(name);

  await checkArchive(names);
  expect(await sidecar.stop()).toBe(0);
  expect(existsSync(join(folder, "plugins/barman-cloud.cloudnative-pg.io"))).toBe(false);
}, 180_000);

test("one that the kernel kills for its memory in mid-upload has acknowledged nothing that is lost", async () => {
  const later = segments(5, 8);
  for (const name of later) await writeSegment(wal(), name);
  sidecar = await start();
  const running = sidecar;
  const [held = ""] = later;
  let reached = 0;
  proxy.fault = faultOn(held, "swallow", () => {
    reached += 1;
  });
  const outcome = (name: string) =>
    archive(name)?.then(
      () => name,
      () => undefined,
    );
  const first = outcome(held);
  await waitFor("the upload is under way", async () => reached > 0, { timeoutMs: 60_000 });
  // What it has by now does not count: the next page that it touches is too much.
  const limit = limitMemory(running.pid, 4096);
  const rest = later.slice(1).map(outcome);
  expect(await running.ended).toBe("SIGKILL");
  expect(limit.kills()).toBeGreaterThan(0);
  limit.remove();
  await running.kill();
  const acknowledged = (await Promise.all([first, ...rest])).filter((name) => name !== undefined);
  expect(acknowledged).not.toContain(held);
  proxy.fault = () => "pass";
  const { objects } = await listAll(lab.store, "clusters/orders/wals/");
  for (const name of acknowledged) expect(objects.map(({ key }) => key).join()).toContain(name);
  sidecar = await start();
  for (const name of later) await archive(name);
  await checkArchive([...names, ...later]);
  expect(await sidecar.stop()).toBe(0);
}, 180_000);
