import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** A certificate authority for a test, by the openssl program so that our own PKI is not its own judge. */
export interface TestAuthority {
  readonly ca: string;
  issue(commonName: string): Promise<{ cert: string; key: string }>;
  remove(): Promise<void>;
}

/** Makes an authority with ECDSA keys, valid for a day. */
export async function createTestAuthority(): Promise<TestAuthority> {
  const folder = await mkdtemp(join(tmpdir(), "tls-"));
  const file = (name: string) => join(folder, name);
  const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  const caFiles = ["-keyout", file("ca.key"), "-out", file("ca.crt"), "-days", "1", "-subj", "/CN=test-ca"];
  await run("openssl", ["req", "-x509", ...newKey, ...caFiles]);
  let serial = 1;
  return {
    ca: await readFile(file("ca.crt"), "utf8"),
    async issue(commonName) {
      const name = `leaf${serial++}`;
      const [key, request, cert] = [file(`${name}.key`), file(`${name}.csr`), file(`${name}.crt`)];
      await run("openssl", ["req", ...newKey, "-keyout", key, "-out", request, "-subj", `/CN=${commonName}`]);
      const authority = ["-CA", file("ca.crt"), "-CAkey", file("ca.key"), "-set_serial", String(serial)];
      await run("openssl", ["x509", "-req", "-in", request, ...authority, "-days", "1", "-out", cert]);
      return { cert: await readFile(cert, "utf8"), key: await readFile(key, "utf8") };
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
