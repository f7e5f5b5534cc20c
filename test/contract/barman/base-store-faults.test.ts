// Base backups and restores against a real store that fails, or whose client dies: what fails says why, and nothing incomplete
// ever shows as complete.
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { ListMultipartUploadsCommand, S3Client } from "@aws-sdk/client-s3";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { readCatalog } from "../../../src/archive/archive-reader.ts";
import type { BaseStep } from "../../../src/archive/base/failpoint.ts";
import { findBaseBackup } from "../../../src/archive/base/find-base-backup.ts";
import { restoreBaseBackup } from "../../../src/archive/base/restore-base-backup.ts";
import { runRetention } from "../../../src/archive/retention-run.ts";
import type { ObjectStore } from "../../../src/ports/object-store.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import type { S3Options } from "../../../src/store/s3-options.ts";
import { createS3Store } from "../../../src/store/s3-store.ts";
import { createTreeFiles } from "../../../src/store/tree-files.ts";
import { type BarmanTools, barmanTools } from "../../support/barman.ts";
import { captureLogs } from "../../support/log-capture.ts";
import { answerWith, type Fault, type FaultyS3, startFaultyS3 } from "../store/faulty-s3.ts";
import type { BaseChildOptions } from "./base-child.ts";
import { BaseLab } from "./base-lab.ts";

const bucket = "base-store-faults";

let lab: BaseLab;
let faulty: FaultyS3;
let options: S3Options;
let store: ObjectStore;
let barman: BarmanTools;

beforeAll(async () => {
  lab = await BaseLab.start({ bucket });
  barman = await barmanTools(lab.s3);
  faulty = await startFaultyS3(lab.s3.port);
  options = { ...lab.s3.options(bucket), endpoint: faulty.endpoint, readTimeoutMs: 2_000, maxAttempts: 2 };
  store = await createS3Store(options);
});

afterEach(() => {
  faulty.fault = () => "pass";
});

afterAll(async () => {
  store?.close();
  await faulty?.stop();
  await lab?.stop();
});

async function named(name: string) {
  const { backups } = await readCatalog(lab.store, lab.keys);
  return backups.find(({ info }) => info.backupName === name);
}

/** Uploads that were begun and neither completed nor ended. */
async function openUploads(): Promise<string[]> {
  const { endpoint, region, credentials } = lab.s3.options(bucket);
  const client = new S3Client({ endpoint, region, credentials, forcePathStyle: true } as object);
  const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket: bucket }));
  client.destroy();
  return Uploads.map(({ Key = "" }) => Key);
}

/** Does something else with the second part of an upload, and passes all other requests. */
function atSecondPart(fault: Fault): Fault {
  return (incoming, outgoing) => {
    const part = incoming.method === "PUT" && incoming.url?.includes("partNumber=2");
    return part ? fault(incoming, outgoing) : "pass";
  };
}

const isPart = (url: string) => url.includes("partNumber=");
const sleepLess = (ms: number, signal?: AbortSignal) => systemClock.sleep(ms / 20, signal);
const quick = { ...systemClock, sleep: sleepLess };

const silence: Fault = () => "answered";
const cut: Fault = (incoming) => {
  incoming.socket.destroy();
  return "answered";
};

describe("a store that fails in the middle of an upload", () => {
  const faults: [string, Fault, string, RegExp][] = [
    ["403", answerWith(403, "AccessDenied"), "denied", /HTTP 403 AccessDenied/],
    ["404 without a word of the store", answerWith(404), "unavailable", /HTTP 404/],
    ["404, the upload is gone", answerWith(404, "NoSuchUpload"), "unavailable", /HTTP 404 NoSuchUpload/],
    ["500", answerWith(500, "InternalError"), "unavailable", /HTTP 500 InternalError/],
    ["503", answerWith(503, "SlowDown"), "unavailable", /HTTP 503 SlowDown/],
    ["silence", silence, "unavailable", /(timed out|ETIMEDOUT|TimeoutError)/i],
    ["a cut line", cut, "unavailable", /(ECONNRESET|socket hang up|EPIPE)/],
    ["lost answers", () => "passThenCut", "unavailable", /(ECONNRESET|socket hang up)/],
  ];

  test.each(faults)("%s: the backup is FAILED and says why", async (_name, fault, kind, cause) => {
    faulty.fault = atSecondPart(fault);
    const backupName = `backup-${randomUUID()}`;
    const request = { backupName, storePatienceMs: 0 };
    const error = await lab.backup(request, { store }).catch((failure: unknown) => failure as Error);
    expect(error).toMatchObject({ name: "BaseError", kind });
    const { message } = error as Error;
    expect(message).toMatch(cause);
    const failed = await named(backupName);
    const key = lab.keys.tar(failed?.id ?? "", "data", 0, undefined);
    expect(message).toContain(`PUT PART 2 s3://${bucket}/${key}`);
    expect(failed?.info).toMatchObject({ status: "FAILED", endTime: null });
    expect(failed?.info.error).toMatch(cause);
    await expect(findBaseBackup(lab.store, BaseLab.place, backupName)).rejects.toMatchObject({ kind: "notFound" });
    expect(await openUploads()).toEqual([]);
  });

  test("a passing fault is nobody's news", async () => {
    let seen = 0;
    faulty.fault = atSecondPart((...call) => (++seen > 1 ? "pass" : answerWith(503, "SlowDown")(...call)));
    const { info } = await lab.backup({}, { store });
    expect(seen).toBeGreaterThan(1);
    expect(info.status).toBe("DONE");
  });

  test("an outage that ends while there is patience is waited out, for the data as for the last word", async () => {
    let left = 8;
    faulty.seen.length = 0;
    faulty.fault = (incoming, outgoing) => {
      const url = incoming.url ?? "";
      const last = url.includes("/backup.info") && incoming.method === "PUT" && faulty.seen.some(isPart);
      return (isPart(url) || last) && left-- > 0 ? answerWith(503, "SlowDown")(incoming, outgoing) : "pass";
    };
    const { info } = await lab.backup({}, { store, clock: quick });
    expect(info.status).toBe("DONE");
    expect(left).toBeLessThan(0);
    // One that is refused is not asked again: nobody gets rights by waiting.
    faulty.fault = atSecondPart(answerWith(403, "AccessDenied"));
    faulty.seen.length = 0;
    await expect(lab.backup({}, { store, clock: quick })).rejects.toMatchObject({ kind: "denied" });
    expect(faulty.seen.filter((line) => line.includes("partNumber=2")).length).toBe(1);
  });

  test("a store that takes no last word leaves a backup that never was done", async () => {
    const backupName = `backup-${randomUUID()}`;
    let infos = 0;
    faulty.fault = (incoming, outgoing) => {
      const info = incoming.method === "PUT" && incoming.url?.includes("/backup.info");
      if (info) infos += 1;
      return info && infos > 1 ? answerWith(500, "InternalError")(incoming, outgoing) : "pass";
    };
    const request = { backupName, storePatienceMs: 0 };
    await expect(lab.backup(request, { store })).rejects.toThrow(/backup\.info: HTTP 500/);
    const { backups } = await readCatalog(lab.store, lab.keys);
    expect(backups.at(-1)?.info).toMatchObject({ status: "STARTED", backupName: null, endTime: null });
    await expect(findBaseBackup(lab.store, BaseLab.place, backupName)).rejects.toMatchObject({ kind: "notFound" });
  });
});

describe("a process that is killed", { timeout: 180_000 }, () => {
  const steps: BaseStep[] = [
    "backupStarted",
    "startedInfoWritten",
    "controlFileCopied",
    "backupStopped",
    "walArchived",
  ];

  test.each(steps)("after %s leaves no backup that could be taken for a good one", async (dieAfter) => {
    const backupName = `backup-${randomUUID()}`;
    const { socketDir: host, port } = lab.primary;
    const s3 = lab.s3.options(bucket);
    const order: BaseChildOptions = { s3, place: BaseLab.place, backupName, server: { host, port }, dieAfter };
    const program = join(import.meta.dirname, "base-child.ts");
    const child = spawn(process.execPath, ["--import", "tsx", program, JSON.stringify(order)], { stdio: "inherit" });
    const [, signal] = (await once(child, "exit")) as [number | null, string | null];
    expect(signal).toBe("SIGKILL");
    expect(await named(backupName)).toBeUndefined();
    const { backups } = await readCatalog(lab.store, lab.keys);
    expect(backups.filter(({ info }) => info.status === "DONE" && info.backupLabel === null)).toEqual([]);
    const shown = await barman.run("backup-list", ["--format", "json", ...lab.destination]);
    const listed = (JSON.parse(shown.stdout) as { backups_list: { status: string; end_time: unknown }[] }).backups_list;
    expect(listed.every(({ status, end_time }) => (status === "DONE") === (end_time !== null))).toBe(true);
  });

  test("its half upload is ended by the retention policy once it is a day old, its backup once a newer one stays", async () => {
    const { backupId } = await lab.backup({ compression: "lz4" });
    const left = await openUploads();
    expect(left.length).toBeGreaterThan(0);
    const policy = { kind: "redundancy", count: 1 } as const;
    const nowMs = Date.now();
    const run = async (at: number) =>
      runRetention(lab.store, lab.keys, await readCatalog(lab.store, lab.keys), policy, { nowMs: at });
    // One that is still going on looks the same.
    expect(await run(nowMs)).toMatchObject({ uploadsEnded: 0 });
    expect(await openUploads()).toEqual(left);
    expect(await run(nowMs + 25 * 3_600_000)).toMatchObject({ uploadsEnded: left.length });
    expect(await openUploads()).toEqual([]);
    const { backups } = await readCatalog(lab.store, lab.keys);
    expect(backups.map(({ id }) => id)).toEqual([backupId]);
  });
});

describe("a store that fails while a backup is restored", () => {
  let backupId: string;

  beforeAll(async () => {
    backupId = (await lab.backup()).backupId;
  });

  function restore(name: string) {
    const { logger } = captureLogs();
    const request = { ...BaseLab.place, backupId, dataFolder: join(lab.folder, name), sync: false };
    return restoreBaseBackup({ store, tree: createTreeFiles(), clock: quick, logger }, request);
  }

  const isData: (method?: string, url?: string) => boolean = (method, url) =>
    method === "GET" && url?.includes("/data.tar") === true;

  test("half bodies, cuts and busy answers are gone through, from where they broke off", async () => {
    const wishes: Fault[] = [() => "passHalf", answerWith(503, "SlowDown"), () => "passHalf", cut, () => "passHalf"];
    const ranges: (string | undefined)[] = [];
    faulty.fault = (incoming, outgoing) => {
      if (!isData(incoming.method, incoming.url)) return "pass";
      ranges.push(incoming.headers.range);
      return wishes.shift()?.(incoming, outgoing) ?? "pass";
    };
    await expect(restore("bumpy")).resolves.toMatchObject({ backupId });
    expect(wishes).toEqual([]);
    expect(ranges.filter((range) => range !== undefined).length).toBeGreaterThan(2);
  });

  test.each([
    ["403", answerWith(403, "AccessDenied"), "denied"],
    ["500", answerWith(500, "InternalError"), "unavailable"],
    ["404 of a proxy", answerWith(404), "unavailable"],
  ] as const)("%s for good: the folder is empty again, and nothing is called absent", async (name, fault, kind) => {
    const folder = join(lab.folder, `fails-${name}`);
    await mkdir(folder);
    faulty.fault = (incoming, outgoing) => (isData(incoming.method, incoming.url) ? fault(incoming, outgoing) : "pass");
    await expect(restore(`fails-${name}`)).rejects.toMatchObject({
      kind,
      message: expect.stringMatching(/GET s3:\/\/.*\/data\.tar: HTTP \d{3}/),
    });
    expect(await readdir(folder)).toEqual([]);
  });
});
