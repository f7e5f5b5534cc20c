// The backup mode of a standby: only the primary can close and archive the segment that its end lies in.
import { readFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createS3Store } from "../../../src/store/s3-store.ts";
import { type S3Server, startS3Server } from "../../support/s3-server.ts";
import { bootPrimary, bootStandby } from "./boot.ts";
import { Lab, type LabInstance, until } from "./lab.ts";

let s3: S3Server;
let lab: Lab;
let one: LabInstance;
let two: LabInstance;

beforeAll(async () => {
  s3 = await startS3Server();
  const store = await createS3Store(s3.options("archive"));
  await store.checkBucket({ create: true });
  store.close();
  const s3Credentials = { accessKeyId: { name: "keys", key: "id" }, secretAccessKey: { name: "keys", key: "secret" } };
  const barmanObjectStore = { destinationPath: "s3://archive", endpointURL: s3.endpoint, s3Credentials };
  lab = await Lab.start({ instances: 2, spec: { backup: { barmanObjectStore } } });
  const stringData = { id: s3.accessKey, secret: s3.secretKey };
  await lab.apply({ apiVersion: "v1", kind: "Secret", metadata: { name: "keys" }, stringData });
  await lab.patchStatus({ operatorCertificateFingerprint: lab.operatorFingerprint() });
  [one, two] = [await lab.instance("lab-1"), await lab.instance("lab-2")];
  await bootPrimary(lab, one);
  await bootStandby(two);
});

afterAll(async () => {
  await lab?.stop();
  await s3?.stop();
});

interface ModeData {
  phase?: string;
  endLSN?: string;
}

/** Asks the standby for its backup mode, as the operator does. */
function ask(method: "GET" | "POST" | "PUT", body?: object): Promise<{ status: number; data: ModeData }> {
  const [cert, key] = ["operator.crt", "operator.key"].map((name) => readFileSync(join(lab.root, name)));
  const to = { host: "127.0.0.1", port: two.ports.status, path: "/pg/mode/backup", rejectUnauthorized: false };
  return new Promise((resolve, reject) => {
    const call = request({ ...to, method, cert, key, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (piece: string) => {
        text += piece;
      });
      response.on("end", () => {
        const { data = {} } = JSON.parse(text) as { data?: ModeData };
        resolve({ status: response.statusCode ?? 0, data });
      });
    });
    call.on("error", reject);
    call.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

const reaches = (phase: string) =>
  until(
    phase,
    async () => {
      const { data } = await ask("GET");
      return data.phase === phase && data;
    },
    90_000,
  );

const lastArchived = () => one.psql("SELECT last_archived_wal FROM pg_stat_archiver");

test("it ends only once the primary has closed and archived the segment that it needs", async () => {
  const metadata = { name: "b" };
  const spec = { cluster: { name: "lab" }, method: "volumeSnapshot" };
  await lab.apply({ apiVersion: "postgresql.cnpg.io/v1", kind: "Backup", metadata, spec });
  one.psql("SELECT pg_logical_emit_message(true, 'test', 'x')");
  const first = one.psql("SELECT pg_walfile_name(pg_switch_wal())");
  await until("the archive works", async () => lastArchived() >= first, 60_000);
  // Something that the copy of the standby holds, in a segment that nobody closes by himself for minutes.
  one.psql("CREATE TABLE kept AS SELECT generate_series(1, 100) AS x");
  await until("the standby has it", async () => two.psql("SELECT to_regclass('kept') IS NOT NULL") === "t");

  const begun = await ask("POST", { backupName: "b", immediateCheckpoint: true, waitForArchive: true });
  expect(begun.status).toBe(200);
  await reaches("started");
  const before = lastArchived();
  expect((await ask("PUT", { backupName: "b" })).status).toBe(200);
  const { endLSN } = await reaches("completed");
  const needed = one.psql(`SELECT pg_walfile_name('${endLSN}')`);
  expect(before < needed).toBe(true);
  expect(lastArchived() >= needed).toBe(true);
}, 240_000);
