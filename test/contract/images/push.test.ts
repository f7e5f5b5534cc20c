import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { operatorImage } from "../../../images/archives.ts";
import { repository } from "../../../images/cache.ts";

const blobs = new Map<string, Buffer>();
const manifests = new Map<string, Buffer>();
const uploads = new Map<string, Buffer[]>();
let server: Server;
let host: string;

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

const digestOf = (data: Buffer) => `sha256:${createHash("sha256").update(data).digest("hex")}`;

/** As much of a registry as a push needs; checks every digest. */
async function answer(request: IncomingMessage): Promise<{ status: number; headers?: Record<string, string> }> {
  const url = new URL(request.url ?? "/", "http://registry");
  const [, name, kind, id = ""] = /^\/v2\/(.+?)\/(blobs|manifests)\/(.*)$/.exec(url.pathname) ?? [];
  if (url.pathname === "/v2/") return { status: 200 };
  if (!name || !kind) return { status: 404 };
  const body = await readBody(request);
  if (kind === "manifests") {
    if (request.method !== "PUT") return { status: manifests.has(`${name}:${id}`) ? 200 : 404 };
    manifests.set(`${name}:${id}`, body);
    return { status: 201, headers: { "Docker-Content-Digest": digestOf(body) } };
  }
  if (request.method === "HEAD") {
    const size = blobs.get(id)?.length;
    return size === undefined ? { status: 404 } : { status: 200, headers: { "Content-Length": String(size) } };
  }
  if (request.method === "POST") {
    const upload = String(uploads.size + 1);
    uploads.set(upload, []);
    return { status: 202, headers: { Location: `/v2/${name}/blobs/uploads/${upload}` } };
  }
  const parts = uploads.get(id.replace("uploads/", "")) ?? [];
  parts.push(body);
  if (request.method === "PATCH") return { status: 202, headers: { Location: url.pathname } };
  const blob = Buffer.concat(parts);
  const wanted = url.searchParams.get("digest") ?? "";
  if (digestOf(blob) !== wanted) return { status: 400 };
  blobs.set(wanted, blob);
  return { status: 201 };
}

beforeAll(async () => {
  server = createServer((request, response) => {
    void answer(request).then(({ status, headers }) => response.writeHead(status, headers).end());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  host = `localhost:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.close();
});

it("pushes an image with all its layers to a registry instead of loading it", async () => {
  const args = ["--import", "tsx", join(repository, "images", "build.ts"), "images"];
  const options = ["--only", operatorImage, "--registry", `${host}/team`];
  const { stdout } = await promisify(execFile)(process.execPath, [...args, ...options], { cwd: repository });
  expect(stdout).toContain(`pushing ${host}/team/cnpg-ts:dev`);
  expect(stdout).not.toContain("loaded");
  const manifest = JSON.parse(manifests.get("team/cnpg-ts:dev")?.toString() ?? "{}");
  const config = JSON.parse(blobs.get(manifest.config.digest)?.toString() ?? "{}");
  expect(config.config.Entrypoint).toEqual(["/manager"]);
  expect(manifest.layers.length).toBeGreaterThan(0);
  for (const layer of manifest.layers) expect(blobs.has(layer.digest)).toBe(true);
}, 300_000);

it.each([
  [["nonsense"], "nothing to build by the name nonsense"],
  [["images", "--only", "localhost/none:1"], "No such image: localhost/none:1"],
  [["--no-such-option"], "no-such-option"],
])("the command refuses %j with a reason", async (args, reason) => {
  const run = promisify(execFile)(
    process.execPath,
    ["--import", "tsx", join(repository, "images", "build.ts"), ...args],
    {
      cwd: repository,
    },
  );
  await expect(run).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining(reason) });
});
