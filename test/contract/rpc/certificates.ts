import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** PEM texts of a certificate and its key. */
export interface Pair {
  cert: string;
  key: string;
}

const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

/** A self-signed certificate that is no authority, as cert-manager makes them for plugins; by openssl, not by our PKI. */
export async function selfSigned(name: string): Promise<Pair> {
  return inFolder(async (file) => {
    const extensions = ["-addext", `subjectAltName=DNS:${name}`, "-addext", "basicConstraints=critical,CA:FALSE"];
    const output = ["-keyout", file("key"), "-out", file("crt"), "-days", "1", "-subj", `/CN=${name}`];
    await run("openssl", ["req", "-x509", ...newKey, ...output, ...extensions]);
    return readPair(file);
  });
}

/** A certificate from an authority that nobody is told about. */
export async function issuedByUnknown(name: string): Promise<Pair> {
  return inFolder(async (file) => {
    const ca = ["-keyout", file("ca.key"), "-out", file("ca.crt"), "-days", "1", "-subj", "/CN=some authority"];
    await run("openssl", ["req", "-x509", ...newKey, ...ca]);
    const request = ["-keyout", file("key"), "-out", file("csr"), "-subj", `/CN=${name}`];
    await run("openssl", ["req", ...newKey, ...request, "-addext", `subjectAltName=DNS:${name}`]);
    const signing = ["-CA", file("ca.crt"), "-CAkey", file("ca.key"), "-days", "1", "-copy_extensions", "copy"];
    await run("openssl", ["x509", "-req", "-in", file("csr"), ...signing, "-out", file("crt")]);
    return readPair(file);
  });
}

async function readPair(file: (name: string) => string): Promise<Pair> {
  return { cert: await readFile(file("crt"), "utf8"), key: await readFile(file("key"), "utf8") };
}

async function inFolder<T>(work: (file: (name: string) => string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "rpc-tls-"));
  try {
    return await work((name) => join(folder, name));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
