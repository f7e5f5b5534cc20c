import { execFile } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { chmod, chown, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { KeyPair } from "../../../src/build/certificate-secrets.ts";
import { publicKeyFingerprint } from "../../../src/pki/certificate.ts";
import { createAuthority, createClientIdentity, createLeaf, renewAuthority } from "../../../src/pki/issue.ts";
import { type PostgresServer, startPostgres } from "../../support/postgres-server.ts";

const run = promisify(execFile);
const validity = { now: Date.now(), durationDays: 90 };
let folder: string;
let authority: KeyPair;
let server: KeyPair;
let client: KeyPair;

async function file(name: string, text: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, text, { mode: 0o600 });
  return path;
}

/** What openssl prints, whether it is content or not. */
async function openssl(...args: string[]): Promise<string> {
  const result = await run("openssl", args).catch((error: { stdout: string; stderr: string }) => error);
  return `${result.stdout}${result.stderr}`;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "pki-"));
  authority = await createAuthority({ commonName: "db", organizationalUnit: "shop, and more" }, validity);
  server = await createLeaf(
    authority,
    { commonName: "db-rw", usage: "server", dnsNames: ["db-rw", "db-rw.shop.svc"] },
    validity,
  );
  client = await createLeaf(authority, { commonName: "streaming_replica", usage: "client", dnsNames: [] }, validity);
  await file("ca.crt", authority.certificate);
  await file("renewed-ca.crt", renewAuthority(authority, validity));
  await file("server.crt", server.certificate);
  await file("client.crt", client.certificate);
});

afterAll(() => rm(folder, { recursive: true, force: true }));

describe("openssl", () => {
  const verify = (purpose: string, ca: string, certificate: string) =>
    openssl("verify", "-x509_strict", "-purpose", purpose, "-CAfile", join(folder, ca), join(folder, certificate));

  test.each([
    ["sslserver", "ca.crt", "server.crt"],
    ["sslclient", "ca.crt", "client.crt"],
    ["sslserver", "renewed-ca.crt", "server.crt"],
  ])("accepts as %s under %s the certificate %s", async (purpose, ca, certificate) => {
    expect(await verify(purpose, ca, certificate)).toMatch(/: OK\s*$/);
  });

  test("refuses a certificate for the other purpose", async () => {
    expect(await verify("sslserver", "ca.crt", "client.crt")).toContain("unsuitable certificate purpose");
    expect(await verify("sslclient", "ca.crt", "server.crt")).toContain("unsuitable certificate purpose");
  });

  test("reads what the certificates say", async () => {
    const text = await openssl("x509", "-noout", "-text", "-in", join(folder, "server.crt"));
    expect(text).toMatch(/Issuer: OU ?= ?"shop, and more", CN ?= ?db/);
    expect(text).toMatch(/X509v3 Key Usage: critical\s+Digital Signature, Key Encipherment, Key Agreement/);
    expect(text).toMatch(/X509v3 Basic Constraints: critical\s+CA:FALSE/);
    expect(text).toContain("DNS:db-rw, DNS:db-rw.shop.svc");
    expect(await openssl("x509", "-noout", "-checkhost", "db-rw", "-in", join(folder, "server.crt"))).toContain(
      "does match certificate",
    );
  });

  test("reads the keys, which are elliptic-curve ones in the old form", async () => {
    const path = await file("ca.key", authority.privateKey);
    expect(authority.privateKey).toMatch(/^-----BEGIN EC PRIVATE KEY-----\n/);
    expect(await openssl("ec", "-in", path, "-noout", "-text")).toContain("NIST CURVE: P-256");
  });

  test("agrees on the operator's identity, which has no end", async () => {
    const identity = await createClientIdentity("operator", validity.now);
    const path = await file("identity.crt", identity.certificate);
    expect(await openssl("x509", "-noout", "-enddate", "-in", path)).toContain("Dec 31 23:59:59 9999 GMT");
    const key = await file("identity.pub", await openssl("x509", "-noout", "-pubkey", "-in", path));
    const { stdout } = await run("sh", ["-c", `openssl pkey -pubin -in "$1" -outform der | sha256sum`, "sh", key]);
    expect(publicKeyFingerprint(new X509Certificate(identity.certificate))).toBe(stdout.split(" ")[0]);
  });
});

describe("PostgreSQL", () => {
  let postgres: PostgresServer;

  beforeAll(async () => {
    postgres = await startPostgres({
      settings: {
        ssl: "on",
        ssl_min_protocol_version: "TLSv1.3",
        ssl_ca_file: "ca.crt",
        ssl_cert_file: "server.crt",
        ssl_key_file: "server.key",
      },
      hba: "local all all trust\nhostssl all streaming_replica all cert\nhostssl replication streaming_replica all cert\n",
      prepare: async (dataDir, user) => {
        const files = {
          "ca.crt": authority.certificate,
          "server.crt": server.certificate,
          "server.key": server.privateKey,
        };
        for (const [name, text] of Object.entries(files)) {
          const path = join(dataDir, name);
          await writeFile(path, text);
          await chown(path, user.uid, user.gid);
          await chmod(path, 0o600);
        }
      },
    });
    await psql(
      `host=${postgres.socketDir} port=${postgres.port} user=postgres`,
      "CREATE ROLE streaming_replica LOGIN REPLICATION",
    );
  });

  afterAll(() => postgres?.stop());

  async function psql(conninfo: string, sql: string): Promise<string> {
    const args = ["-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql, `${conninfo} dbname=postgres`];
    const result = await run(join(postgres.binDir, "psql"), args).catch(
      (error: { stdout: string; stderr: string }) => error,
    );
    return `${result.stdout}${result.stderr}`.trim();
  }

  async function connect(host: string, certificate: KeyPair): Promise<string> {
    const [crt, key] = [await file("c.crt", certificate.certificate), await file("c.key", certificate.privateKey)];
    const tls = `sslmode=verify-full sslrootcert=${join(folder, "ca.crt")} sslcert=${crt} sslkey=${key}`;
    return psql(
      `host=${host} hostaddr=127.0.0.1 port=${postgres.port} user=streaming_replica ${tls}`,
      "SELECT client_dn FROM pg_stat_ssl WHERE pid = pg_backend_pid()",
    );
  }

  test("and its client know each other by our certificates", async () => {
    expect(await connect("db-rw", client)).toBe("/CN=streaming_replica");
  });

  test("refuses a certificate of another authority, and one of another user", async () => {
    const other = await createAuthority({ commonName: "db", organizationalUnit: "shop, and more" }, validity);
    const leaf = { commonName: "streaming_replica", usage: "client" as const, dnsNames: [] };
    expect(await connect("db-rw", await createLeaf(other, leaf, validity))).toMatch(
      /unknown ca|certificate verify failed/i,
    );
    const stranger = await createLeaf(authority, { ...leaf, commonName: "stranger" }, validity);
    expect(await connect("db-rw", stranger)).toContain("certificate authentication failed");
  });

  test("is refused by its client under another name", async () => {
    expect(await connect("db-ro", client)).toContain('does not match host name "db-ro"');
  });
});
