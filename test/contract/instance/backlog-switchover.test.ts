import { mkdtempSync, rmSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { listAll } from "../../../src/ports/object-store.ts";
import { createS3Store } from "../../../src/store/s3-store.ts";
import { type BarmanTools, barmanTools } from "../../support/barman.ts";
import { type S3Server, startS3Server } from "../../support/s3-server.ts";
import { type FaultyS3, startFaultyS3 } from "../store/faulty-s3.ts";
import { bootPrimary, bootStandby } from "./boot.ts";
import { Lab, type LabInstance, until } from "./lab.ts";

const destination = "s3://archive/backlog";

let s3: S3Server;
let store: FaultyS3;
let barman: BarmanTools;
let lab: Lab;
let one: LabInstance;
let two: LabInstance;
let folder: string;

beforeAll(async () => {
  s3 = await startS3Server();
  store = await startFaultyS3(s3.port);
  barman = await barmanTools(s3);
  const bucket = await createS3Store(s3.options("archive"));
  await bucket.checkBucket({ create: true });
  bucket.close();
  folder = mkdtempSync(join(tmpdir(), "backlog-"));
  const s3Credentials = {
    accessKeyId: { name: "keys", key: "id" },
    secretAccessKey: { name: "keys", key: "secret" },
  };
  const wal = { compression: "gzip" as const };
  const barmanObjectStore = { destinationPath: destination, endpointURL: store.endpoint, s3Credentials, wal };
  lab = await Lab.start({ instances: 2, spec: { switchoverDelay: 5, backup: { barmanObjectStore } } });
  const stringData = { id: s3.accessKey, secret: s3.secretKey };
  await lab.apply({ apiVersion: "v1", kind: "Secret", metadata: { name: "keys" }, stringData });
  one = await lab.instance("lab-1");
  two = await lab.instance("lab-2");
});

afterAll(async () => {
  await lab?.stop();
  await store?.stop();
  await s3?.stop();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

const waiting = new Set<ServerResponse>();

/** Takes no object, and says nothing of it. */
function closeStore(): void {
  store.fault = ({ method }, outgoing) => {
    if (method === "GET" || method === "HEAD") return "pass";
    waiting.add(outgoing);
    return "answered";
  };
}

function openStore(): void {
  store.fault = () => "pass";
  for (const outgoing of waiting) outgoing.destroy();
}

/** Finishes the current segment with something in it, and gives its name. */
function finishSegment(): string {
  one.psql("SELECT pg_logical_emit_message(true, 'test', repeat('x', 1000))");
  return one.psql("SELECT pg_walfile_name(pg_switch_wal())");
}

test("a switchover waits for a store that takes nothing as long as switchoverDelay says, and every segment comes there in the end", async () => {
  await bootPrimary(lab, one, { start: (instance) => instance.keep() });
  await bootStandby(two, (instance) => instance.keep());
  const first = finishSegment();
  await until(
    "archiving works",
    async () => one.psql("SELECT last_archived_wal FROM pg_stat_archiver") >= first,
    60_000,
  );

  closeStore();
  const names = Array.from({ length: 12 }, finishSegment);
  one.psql("CREATE TABLE last AS SELECT 1 AS x");
  await lab.patchStatus({ targetPrimary: "lab-2" });
  await until("lab-2 is the primary", async () => (await lab.cluster()).status?.currentPrimary === "lab-2", 60_000);
  lab.route(two);
  const order = ["Executing CHECKPOINT command before shutdown", '"mode":"fast","limitMs":5000', '"mode":"immediate"'];
  const places = order.map((text) => one.output.indexOf(text));
  expect(places.every((place) => place >= 0)).toBe(true);
  expect(places).toEqual([...places].sort((a, b) => a - b));
  expect(two.psql("SELECT x FROM last")).toBe("1");

  openStore();
  const follows = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'";
  await until("lab-1 follows", async () => two.psql(follows) === "1", 120_000);
  for (const name of names) {
    await until(`${name} is in the archive`, async () => {
      const { code } = await barman.run("wal-restore", [destination, "lab", name, join(folder, name)]);
      return code === 0;
    });
  }
  const bucket = await createS3Store(s3.options("archive"));
  const { objects } = await listAll(bucket, "backlog/lab/wals/");
  bucket.close();
  const archived = objects.map(({ key }) => /[0-9A-F]{24}(?=\.gz$)/.exec(key)?.[0]).filter((it) => it !== undefined);
  expect(archived).toEqual([...new Set(archived)]);
  expect(archived).toEqual(expect.arrayContaining(names));
}, 300_000);
