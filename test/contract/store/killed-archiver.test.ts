import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WalRestorer } from "../../../src/archive/wal-restorer.ts";
import { listAll, type ObjectStore } from "../../../src/ports/object-store.ts";
import { createFiles } from "../../../src/process/files.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { createBulkFiles } from "../../../src/store/bulk-files.ts";
import { createS3Store } from "../../../src/store/s3-store.ts";
import { type S3Server, startS3Server } from "../../support/s3-server.ts";
import { createWalFolder, segments, type WalFolder } from "../../support/wal-folder.ts";
import { makeSegment } from "../../support/wal-segment.ts";
import type { ArchiveChildOptions } from "./archive-child.ts";
import { type FaultyS3, startFaultyS3 } from "./faulty-s3.ts";

const bucket = "killed";
const names = segments(1, 6);
let server: S3Server;
let proxy: FaultyS3;
let store: ObjectStore;

beforeAll(async () => {
  server = await startS3Server();
  proxy = await startFaultyS3(server.port);
  store = await createS3Store(server.options(bucket));
  await store.checkBucket({ create: true });
});

afterAll(async () => {
  store?.close();
  await proxy?.stop();
  await server?.stop();
});

/** Runs the child to its end; what it acknowledged, and how it ended. */
async function runChild(
  options: ArchiveChildOptions,
): Promise<{ acknowledged: string[]; signal: string | null; error: string }> {
  const script = new URL("./archive-child.ts", import.meta.url).pathname;
  const child = spawn(process.execPath, ["--import", "tsx", script, JSON.stringify(options)], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  let error = "";
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  child.stderr.on("data", (chunk: Buffer) => {
    error += chunk.toString();
  });
  const signal = await new Promise<string | null>((resolve) => child.once("close", (_code, name) => resolve(name)));
  return { acknowledged: output.split("\n").filter((line) => line !== ""), signal, error };
}

async function stocked(): Promise<WalFolder> {
  const folder = await createWalFolder();
  await folder.ready(...names);
  await writeFile(join(folder.root, "marker"), "");
  return folder;
}

/** Whatever was told to PostgreSQL can be restored, byte by byte. */
async function expectRestorable(serverName: string, acknowledged: readonly string[], folder: WalFolder): Promise<void> {
  const restorer = new WalRestorer(
    { path: "p", serverName, spoolFolder: join(folder.root, "spool"), prefetch: 0 },
    {
      store,
      files: createFiles(),
      bulk: createBulkFiles(),
      clock: systemClock,
      random: systemRandom,
      logger: folder.logs.logger,
    },
  );
  for (const name of acknowledged) {
    const destination = join(folder.root, "restored");
    await restorer.restore({ name, destination });
    expect((await readFile(destination)).equals(makeSegment(name))).toBe(true);
  }
  await restorer.close();
}

const waiting = async (folder: WalFolder) =>
  (await readdir(join(folder.wal, "archive_status")))
    .flatMap((file) => (file.endsWith(".ready") ? [file.slice(0, -6)] : []))
    .sort();

test.each([
  ["emptyChecked", 1],
  ["compressed", 1],
  ["compressed", 4],
  ["uploaded", 1],
  ["uploaded", 3],
  ["recorded", 1],
  ["recorded", 4],
  ["markerRemoved", 1],
  ["answered", 2],
])(
  "killed after step %s, for the %i. time: nothing acknowledged is lost, and archiving goes on",
  async (step, count) => {
    const folder = await stocked();
    const serverName = `kill-${step}-${count}`;
    const base = { s3: server.options(bucket), root: folder.root, serverName };
    const first = await runChild({ ...base, names, die: { step, count } });
    expect(first).toMatchObject({ signal: "SIGKILL" });
    await expectRestorable(serverName, first.acknowledged, folder);
    // PostgreSQL keeps what was not acknowledged, and asks again.
    const left = (await waiting(folder)).filter((name) => names.includes(name));
    expect([...first.acknowledged, ...left].filter((name, at, all) => all.indexOf(name) === at)).toEqual(names);

    const second = await runChild({ ...base, names: left });
    expect(second).toMatchObject({ signal: null, error: "" });
    expect(second.acknowledged).toEqual(left);
    await expectRestorable(serverName, names, folder);
    expect(existsSync(join(folder.root, "marker"))).toBe(false);
    const { objects } = await listAll(store, `p/${serverName}/wals/`);
    expect(objects.map(({ key }) => key.slice(-28))).toEqual(names.map((name) => `${name}.zst`));
    await folder.remove();
  },
);

test("killed in the middle of an upload: the half object is none, and the segment stays", async () => {
  const folder = await stocked();
  await rm(join(folder.root, "marker"));
  const [name = ""] = names;
  await writeFile(folder.path(name), makeSegment(name, { segmentBytes: 16 << 20 }));
  let cut = false;
  proxy.fault = (incoming) => {
    if (incoming.method === "PUT" && incoming.url?.includes(name)) {
      // The body is held up for good, and the client dies meanwhile.
      incoming.pause();
      cut = true;
      return "answered";
    }
    return "pass";
  };
  const s3 = { ...server.options(bucket), endpoint: proxy.endpoint };
  const script = new URL("./archive-child.ts", import.meta.url).pathname;
  const options: ArchiveChildOptions = { s3, root: folder.root, serverName: "mid-upload", names: [name] };
  const child = spawn(process.execPath, ["--import", "tsx", script, JSON.stringify(options)], { stdio: "ignore" });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  for (let tries = 0; !cut && tries < 600; tries++) await sleep(50);
  expect(cut).toBe(true);
  child.kill("SIGKILL");
  await ended;
  const objects = async () => (await listAll(store, "p/mid-upload/wals/")).objects.map(({ key }) => key.slice(-28, -4));
  expect(await objects()).not.toContain(name);
  expect(await waiting(folder)).toContain(name);

  proxy.fault = () => "pass";
  const again = await runChild(options);
  expect(again).toMatchObject({ signal: null, acknowledged: [name] });
  expect((await objects()).filter((each) => each === name)).toHaveLength(1);
  await folder.remove();
});

test("the same segment asked for again with other bytes, after a kill between upload and record, is refused", async () => {
  const folder = await stocked();
  const [name = ""] = names;
  const base = { s3: server.options(bucket), root: folder.root, serverName: "other-bytes", names: [name] };
  const first = await runChild({ ...base, die: { step: "uploaded", count: 1 } });
  expect(first).toMatchObject({ signal: "SIGKILL", acknowledged: [] });
  await writeFile(folder.path(name), makeSegment(name, { seed: "rewound" }));
  const second = await runChild(base);
  expect(second.acknowledged).toEqual([]);
  expect(second.error).toMatch(/Expected empty archive|holds other bytes/);
  await folder.remove();
});
