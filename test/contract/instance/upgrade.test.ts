import { type ChildProcess, execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { appendFileSync, copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { type RequestOptions, request } from "node:https";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildLauncher } from "../../../launcher/build.ts";
import { type SendOutcome, sendManager } from "../../../src/operator/send-manager.ts";
import { openManagerArchive } from "../../../src/store/manager-archive.ts";
import { Lab, type LabInstance, until } from "./lab.ts";

const arch = process.arch === "x64" ? "amd64" : process.arch;

interface Release {
  hash: string;
  archive: Buffer;
}

let lab: Lab;
let one: LabInstance;
let writer: ChildProcess;
const releases: Record<string, Release> = {};

/** Puts a whole release into a folder, as an image has it; releases differ in their program. */
async function install(folder: string, version: string): Promise<Release> {
  const runtime = join(folder, "runtime");
  mkdirSync(runtime, { recursive: true });
  if (!existsSync(join(folder, "manager"))) copyFileSync(await buildLauncher(), join(folder, "manager"));
  writeFileSync(join(runtime, "node"), `#!/bin/sh\nexec "${lab.node}" "$@"\n`, { mode: 0o755 });
  copyFileSync(lab.bundle, join(runtime, "manager.cjs"));
  appendFileSync(join(runtime, "manager.cjs"), `\n// ${version}\n`);
  const packed = await openManagerArchive({
    launcher: join(folder, "manager"),
    runtimeFolder: runtime,
    release: { version, arch },
  });
  const parts: Uint8Array[] = [];
  for await (const part of packed.read()) parts.push(Buffer.from(part));
  const archive = Buffer.concat(parts);
  const hash = createHash("sha256").update(archive).digest("hex");
  writeFileSync(join(runtime, "manifest.json"), JSON.stringify({ version, arch, hash }));
  return { hash, archive };
}

/** Sends a manager by the operator's own means. */
async function deliver(archive: Buffer): Promise<SendOutcome> {
  const identity = {
    certificate: readFileSync(join(lab.root, "operator.crt"), "utf8"),
    privateKey: readFileSync(join(lab.root, "operator.key"), "utf8"),
    fingerprint: lab.operatorFingerprint(),
  };
  const authority = await lab.plane.kubectl(["get", "secret", "lab-ca", "-o", "jsonpath={.data.ca\\.crt}"]);
  return sendManager({
    ip: "127.0.0.1",
    port: one.ports.status,
    serverCa: Buffer.from(authority, "base64").toString("utf8"),
    identity,
    archive: { size: archive.length, read: () => pieces(archive) },
    signal: new AbortController().signal,
  });
}

async function* pieces(archive: Buffer): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < archive.length; at += 100_000) yield archive.subarray(at, at + 100_000);
}

type Answer = { status: number; body: string } | "cut off";

/** Sends a manager as the operator does; `cut` ends the connection after so many bytes. */
async function send(
  body: Buffer,
  options: { method?: string; cut?: number; anonymous?: boolean } = {},
): Promise<Answer> {
  const secret = (name: string) => readFileSync(join(lab.root, name));
  const call: RequestOptions = {
    host: "127.0.0.1",
    port: one.ports.status,
    path: "/update",
    method: options.method ?? "PUT",
    rejectUnauthorized: false,
    agent: false,
    headers: { "content-length": body.length, expect: "100-continue" },
    ...(options.anonymous ? {} : { cert: secret("operator.crt"), key: secret("operator.key") }),
  };
  const sent = request(call);
  sent.on("continue", () => {
    if (options.cut === undefined) sent.end(body);
    else sent.write(body.subarray(0, options.cut), () => sent.destroy());
  });
  sent.flushHeaders();
  return new Promise((resolve) => {
    sent.on("error", () => resolve("cut off"));
    sent.on("response", (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (piece: string) => {
        text += piece;
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body: text }));
      response.on("error", () => resolve("cut off"));
    });
  });
}

const expectManager = (hash: string | undefined) =>
  lab.patchStatus({ availableArchitectures: hash ? [{ goArch: arch, hash }] : [] });
const rows = () => Number(one.psql("SELECT count(*) FROM written"));

async function moreRows(): Promise<void> {
  const before = rows();
  await until("more rows of the one session", async () => rows() > before + 5);
}

beforeAll(async () => {
  lab = await Lab.start();
  one = await lab.instance("lab-1");
  const exit = await one.job("initdb", ["--initdb-flags=--encoding=UTF8 --locale=C"]).exit;
  expect(exit, one.output.slice(-2000)).toBe(0);
  releases["old"] = await install(one.scratch, "old");
  // As in a pod, where the init container runs as the same user.
  execFileSync("chown", ["-R", `${lab.user.uid}:${lab.user.gid}`, one.scratch]);
  for (const version of ["new", "newer"]) releases[version] = await install(join(lab.root, version), version);
  await lab.patchStatus({ operatorCertificateFingerprint: lab.operatorFingerprint() });
  one.run({ launcher: true });
  await one.ready();
  one.psql("CREATE TABLE written (at timestamptz); CREATE TABLE enough ()");
  writer = one.session(
    `DO $$ BEGIN WHILE to_regclass('enough') IS NOT NULL LOOP
       INSERT INTO written VALUES (clock_timestamp()); COMMIT; PERFORM pg_sleep(0.02); END LOOP; END $$`,
  );
  await moreRows();
});

afterAll(() => lab?.stop());

describe("a manager that is sent to a running instance", () => {
  test("takes over: same session, same postmaster, same PID 1, other hash", async () => {
    await expectManager(releases["new"]?.hash);
    const before = await one.status();
    expect(before).toMatchObject({ executableHash: releases["old"]?.hash, isInstanceManagerUpgrading: false });
    const postmaster = one.postmasterPid();
    const launchers = one.launcherPids();
    expect(await deliver(releases["new"]?.archive ?? Buffer.alloc(0))).toEqual({ kind: "sent" });
    const after = await until("the new manager", async () => {
      const status = await one.status();
      return status.executableHash === releases["new"]?.hash && status;
    });
    expect(after.sessionID).not.toBe(before.sessionID);
    expect(after.isPrimary).toBe(true);
    await moreRows();
    expect(writer.exitCode).toBeNull();
    expect(one.postmasterPid()).toBe(postmaster);
    expect(one.launcherPids()).toEqual(launchers);
    expect(launchers).toHaveLength(1);
    await until("the end of the old files", async () => !existsSync(join(one.scratch, "manager.new")));
    const lease = await lab.lease();
    expect(lease.spec).toMatchObject({ holderIdentity: "lab-1", leaseTransitions: 1 });
    expect((await one.get("/readyz")).status).toBe(200);
  });

  test("keeps its log: what PostgreSQL says goes on coming out", async () => {
    one.psql("DO $$ BEGIN RAISE LOG 'after the upgrade'; END $$");
    await until("the line", async () => one.output.includes("after the upgrade"));
  });
});

describe("the manager that runs stays, and PostgreSQL with it", () => {
  const current = async () => {
    const { executableHash, sessionID, isInstanceManagerUpgrading } = await one.status();
    return { executableHash, sessionID, isInstanceManagerUpgrading };
  };
  const newer = () => releases["newer"]?.archive ?? Buffer.alloc(0);

  test.each<[string, () => Promise<Answer>, number, RegExp]>([
    [
      "another manager than the Cluster names",
      async () => {
        await expectManager("0".repeat(64));
        const reason = expect.stringMatching(/^it answered 500: the manager has the hash/);
        expect(await deliver(newer())).toEqual({ kind: "failed", reason });
        return send(newer());
      },
      500,
      /has the hash [0-9a-f]{64}, status.availableArchitectures expects 0{64}/,
    ],
    [
      "an architecture that the Cluster does not name",
      async () => {
        await expectManager(undefined);
        return send(newer());
      },
      500,
      /names no manager for/,
    ],
    ["a program that is no archive of ours", () => send(Buffer.alloc(100_000, "\x7fELF")), 500, /no archive/],
    ["another method", () => send(newer(), { method: "POST" }), 405, /PUT/],
    ["a sender without a certificate", () => send(newer(), { anonymous: true }), 401, /certificate required/],
    [
      "a sender that the Cluster does not know",
      async () => {
        await lab.patchStatus({ operatorCertificateFingerprint: "else" });
        const answer = await until("a refusal", async () => {
          const refusal = await one.get("/pg/controldata", { operator: true });
          return refusal.status === 503 && send(newer());
        });
        const reason = "it answered 503: operator certificate not recognized";
        expect(await deliver(newer())).toEqual({ kind: "refused", reason });
        await lab.patchStatus({ operatorCertificateFingerprint: lab.operatorFingerprint() });
        await until("the right one", async () => {
          return (await one.get("/pg/controldata", { operator: true })).status === 200;
        });
        return answer;
      },
      503,
      /not recognized/,
    ],
  ])("after %s", async (_name, act, status, body) => {
    const before = await current();
    expect(await act()).toEqual({ status, body: expect.stringMatching(body) });
    expect(await current()).toEqual(before);
    expect(existsSync(join(one.scratch, "manager.new"))).toBe(false);
    await moreRows();
    expect(writer.exitCode).toBeNull();
  });

  test("after a stream that is cut off", async () => {
    await expectManager(releases["newer"]?.hash);
    const before = await current();
    expect(await send(newer(), { cut: newer().length - 5_000 })).toBe("cut off");
    await until("the end of the attempt", async () => !(await current()).isInstanceManagerUpgrading);
    expect(await current()).toEqual(before);
    expect(existsSync(join(one.scratch, "manager.new"))).toBe(false);
    await moreRows();
  });

  test("after a launcher that cannot be started, and its log is read on", async () => {
    const folder = join(lab.root, "broken");
    mkdirSync(folder);
    writeFileSync(join(folder, "manager"), "#!/no/such/interpreter\n", { mode: 0o755 });
    const broken = await install(folder, "broken");
    await expectManager(broken.hash);
    const before = await current();
    expect(await send(broken.archive)).toEqual({ status: 500, body: expect.stringContaining("cannot start") });
    expect(await current()).toEqual(before);
    one.psql("DO $$ BEGIN RAISE LOG 'after the refusal'; END $$");
    await until("the line", async () => one.output.includes("after the refusal"));
    await moreRows();
  });

  test("while another one is being received, which then takes over", async () => {
    await expectManager(releases["newer"]?.hash);
    const postmaster = one.postmasterPid();
    const first = request({
      host: "127.0.0.1",
      port: one.ports.status,
      path: "/update",
      method: "PUT",
      rejectUnauthorized: false,
      agent: false,
      headers: { "content-length": newer().length },
      cert: readFileSync(join(lab.root, "operator.crt")),
      key: readFileSync(join(lab.root, "operator.key")),
    });
    first.on("error", () => undefined);
    const gone = new Promise((resolve) => first.on("close", resolve));
    first.write(newer().subarray(0, 2_000));
    await until("the first to arrive", async () => (await current()).isInstanceManagerUpgrading);
    expect(await send(newer())).toEqual({ status: 418, body: expect.stringContaining("already") });
    first.end(newer().subarray(2_000));
    await gone;
    await until("the newer manager", async () => (await current()).executableHash === releases["newer"]?.hash);
    expect(one.postmasterPid()).toBe(postmaster);
    await moreRows();
  });

  test("the session wrote all the time, and was never cut off", async () => {
    one.psql("DROP TABLE enough");
    expect((await once(writer, "exit"))[0]).toBe(0);
  });
});
