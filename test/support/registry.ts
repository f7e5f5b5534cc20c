import { createHash, type Hash } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

/** As much of an image registry as a push needs. It checks every digest, and keeps what is small. */
export interface Registry {
  /** Host and port, by a name that image tools reach without TLS. */
  host: string;
  /** Text of a manifest by `name:tag`. */
  manifest(reference: string): string | undefined;
  references(): string[];
  has(digest: string): boolean;
  /** A blob's text, unless it was large. */
  blob(digest: string): string | undefined;
  stop(): Promise<void>;
}

/** Layers of images come in hundreds of megabytes; of those only the digest is kept. */
const keptBytes = 1_000_000;

interface Upload {
  hash: Hash;
  parts: Buffer[];
  bytes: number;
}

interface Answer {
  status: number;
  headers?: Record<string, string>;
}

/** Starts an empty registry on loopback. */
export async function startRegistry(): Promise<Registry> {
  const blobs = new Map<string, { bytes: number; text?: string }>();
  const manifests = new Map<string, string>();
  const uploads = new Map<string, Upload>();

  async function answer(request: IncomingMessage): Promise<Answer> {
    const url = new URL(request.url ?? "/", "http://registry");
    const [, name, kind, id = ""] = /^\/v2\/(.+?)\/(blobs|manifests)\/(.*)$/.exec(url.pathname) ?? [];
    if (url.pathname === "/v2/") return { status: 200 };
    if (!name || !kind) return { status: 404 };
    if (kind === "manifests") return answerManifest(request, `${name}:${id}`);
    if (request.method === "HEAD") {
      const bytes = blobs.get(id)?.bytes;
      return bytes === undefined ? { status: 404 } : { status: 200, headers: { "Content-Length": String(bytes) } };
    }
    if (request.method === "POST") {
      const upload = String(uploads.size + 1);
      uploads.set(upload, { hash: createHash("sha256"), parts: [], bytes: 0 });
      return { status: 202, headers: { Location: `/v2/${name}/blobs/uploads/${upload}` } };
    }
    const upload = uploads.get(id.replace("uploads/", ""));
    if (!upload) return { status: 404 };
    await receive(request, upload);
    if (request.method === "PATCH") return { status: 202, headers: { Location: url.pathname } };
    const wanted = url.searchParams.get("digest") ?? "";
    if (`sha256:${upload.hash.digest("hex")}` !== wanted) return { status: 400 };
    const text = upload.bytes <= keptBytes ? { text: Buffer.concat(upload.parts).toString() } : {};
    blobs.set(wanted, { bytes: upload.bytes, ...text });
    return { status: 201 };
  }

  async function answerManifest(request: IncomingMessage, reference: string): Promise<Answer> {
    if (request.method !== "PUT") return { status: manifests.has(reference) ? 200 : 404 };
    const upload: Upload = { hash: createHash("sha256"), parts: [], bytes: 0 };
    await receive(request, upload);
    manifests.set(reference, Buffer.concat(upload.parts).toString());
    return { status: 201, headers: { "Docker-Content-Digest": `sha256:${upload.hash.digest("hex")}` } };
  }

  const server = createServer((request, response) => {
    answer(request).then(
      ({ status, headers }) => response.writeHead(status, headers).end(),
      () => response.destroy(),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    host: `localhost:${(server.address() as AddressInfo).port}`,
    manifest: (reference) => manifests.get(reference),
    references: () => [...manifests.keys()].sort(),
    has: (digest) => blobs.has(digest),
    blob: (digest) => blobs.get(digest)?.text,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function receive(request: IncomingMessage, upload: Upload): Promise<void> {
  for await (const chunk of request) {
    const part = chunk as Buffer;
    upload.hash.update(part);
    upload.bytes += part.length;
    if (upload.bytes <= keptBytes) upload.parts.push(part);
    else upload.parts = [];
  }
}
