import { createHash } from "node:crypto";
import { link, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { formatTarHeader, tarEnd, tarPadding } from "../../../src/barman/tar-header.ts";
import { hashManagerArchive, openManagerArchive } from "../../../src/store/manager-archive.ts";
import { ManagerArchiveError, unpackManager } from "../../../src/store/unpack-manager.ts";

let work: string;
let image: string;
let folder: string;
let count = 0;
const release = { version: "1.2.3", arch: "amd64" };
/** Longer than a chunk of the stream. */
const node = Buffer.alloc(700_001, "node");

beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), "cnpg-ts-archive-"));
  image = join(work, "image");
  await mkdir(join(image, "runtime", "lib"), { recursive: true });
  await writeFile(join(image, "manager"), "launcher", { mode: 0o755 });
  await writeFile(join(image, "runtime", "node"), node, { mode: 0o755 });
  await writeFile(join(image, "runtime", "lib", "ld-linux-x86-64.so.2"), "loader", { mode: 0o755 });
  await writeFile(join(image, "runtime", "manager.cjs"), "program");
  await writeFile(join(image, "runtime", "manifest.json"), "not part of it");
});
afterAll(() => rm(work, { recursive: true, force: true }));
beforeEach(async () => {
  count += 1;
  folder = join(work, `unpacked-${count}`);
  await mkdir(folder);
});

const pack = () =>
  openManagerArchive({ launcher: join(image, "manager"), runtimeFolder: join(image, "runtime"), release });

async function bytesOf(archive: { read(): AsyncIterable<Uint8Array> }): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const chunk of archive.read()) parts.push(Buffer.from(chunk));
  return Buffer.concat(parts);
}

/** The bytes in pieces of a length that fits no block. */
async function* pieces(bytes: Buffer, length = 777): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length);
}

function archiveOf(...entries: [name: string, text: string, kind?: "file" | "symlink"][]): Buffer {
  const parts = entries.flatMap(([name, text, kind = "file"]) => [
    formatTarHeader({ name, kind, mode: 0o755, size: text.length, uid: 0, gid: 0, mtimeNs: 0n, linkName: "/etc" }),
    Buffer.from(text),
    new Uint8Array(tarPadding(text.length)),
  ]);
  const length = parts.reduce((sum, it) => sum + it.length, 0);
  return Buffer.concat([...parts, tarEnd(length)]);
}
const ours: [string, string] = ["release.json", '{"format":1,"version":"9","arch":"arm64"}'];

describe("an archive", () => {
  it("has the length that it says, and the same bytes each time, whatever the files' times are", async () => {
    const archive = await pack();
    const bytes = await bytesOf(archive);
    expect(bytes.length).toBe(archive.size);
    const again = join(work, "again");
    await mkdir(join(again, "lib"), { recursive: true });
    for (const name of ["node", "lib/ld-linux-x86-64.so.2", "manager.cjs"]) {
      const { mode } = await stat(join(image, "runtime", name));
      await writeFile(join(again, name), await readFile(join(image, "runtime", name)), { mode });
    }
    const other = await openManagerArchive({ launcher: join(image, "manager"), runtimeFolder: again, release });
    expect(await bytesOf(other)).toEqual(bytes);
    expect(await hashManagerArchive(other)).toBe(createHash("sha256").update(bytes).digest("hex"));
  });

  it("comes out as it went in, with its hash beside it", async () => {
    const archive = await pack();
    const unpacked = await unpackManager(pieces(await bytesOf(archive)), { folder });
    const hash = await hashManagerArchive(archive);
    expect(unpacked).toEqual({ hash, release: { format: 1, ...release } });
    expect((await readdir(folder, { recursive: true })).sort()).toEqual([
      "manager",
      "runtime",
      "runtime/lib",
      "runtime/lib/ld-linux-x86-64.so.2",
      "runtime/manager.cjs",
      "runtime/manifest.json",
      "runtime/node",
    ]);
    expect(await readFile(join(folder, "runtime", "node"))).toEqual(node);
    expect((await stat(join(folder, "runtime", "node"))).mode & 0o777).toBe(0o755);
    expect((await stat(join(folder, "runtime", "manager.cjs"))).mode & 0o777).toBe(0o644);
    expect(JSON.parse(await readFile(join(folder, "runtime", "manifest.json"), "utf8"))).toEqual({ ...release, hash });
    const repacked = await openManagerArchive({
      launcher: join(folder, "manager"),
      runtimeFolder: join(folder, "runtime"),
      release,
    });
    expect(await hashManagerArchive(repacked)).toBe(hash);
  });

  it("takes no space for files that are there already, and writes those that differ in the middle", async () => {
    const present = join(work, "present");
    await mkdir(join(present, "runtime"), { recursive: true });
    await link(join(image, "manager"), join(present, "manager"));
    await writeFile(join(present, "runtime", "manager.cjs"), "proGRAM");
    const other = Buffer.from(node);
    other[690_000] = 1;
    await writeFile(join(present, "runtime", "node"), other, { mode: 0o755 });
    const archive = await pack();
    const { hash } = await unpackManager(pieces(await bytesOf(archive)), { folder, present });
    expect(hash).toBe(await hashManagerArchive(archive));
    expect((await stat(join(folder, "manager"))).ino).toBe((await stat(join(present, "manager"))).ino);
    expect(await readFile(join(folder, "runtime", "node"))).toEqual(node);
    expect(await readFile(join(folder, "runtime", "manager.cjs"), "utf8")).toBe("program");
    expect(await readFile(join(present, "runtime", "node"))).toEqual(other);
  });
});

describe("a stream is refused", () => {
  it("that ends early, wherever it does", async () => {
    const bytes = await bytesOf(await pack());
    for (const length of [0, 100, 512, 1500, 3000, 500_000]) {
      await rm(folder, { recursive: true, force: true });
      await mkdir(folder);
      await expect(unpackManager(pieces(bytes.subarray(0, length)), { folder })).rejects.toThrow(/ends early/);
    }
  });

  it.each<[string, Buffer, RegExp]>([
    ["another program", Buffer.from(`\x7fELF${"\0".repeat(4096)}`), /no archive of an instance manager/],
    ["another archive", archiveOf(["manager", "x"]), /does not begin with release.json/],
    ["a form of later days", archiveOf(["release.json", '{"format":2,"version":"9","arch":"x"}']), /form .* not know/],
    ["a first entry that is no JSON", archiveOf(["release.json", "x"]), /no JSON/],
    ["no launcher", archiveOf(ours, ["runtime/node", "x"]), /holds no manager/],
    ["a path out of the folder", archiveOf(ours, ["runtime/../../evil", "x"]), /evil/],
    ["a hidden file", archiveOf(ours, ["runtime/.bashrc", "x"]), /bashrc/],
    ["an absolute path", archiveOf(ours, ["/etc/passwd", "x"]), /passwd/],
    ["a manifest of its own", archiveOf(ours, ["runtime/manifest.json", "{}"]), /manifest/],
    ["one name twice", archiveOf(ours, ["manager", "x"], ["manager", "y"]), /"manager"/],
    ["a link", archiveOf(ours, ["runtime/lib", "", "symlink"]), /no plain file/],
  ])("that is %s", async (_name, bytes, message) => {
    const attempt = unpackManager(pieces(bytes), { folder });
    await expect(attempt).rejects.toThrow(message);
    await expect(attempt).rejects.toBeInstanceOf(ManagerArchiveError);
  });

  it("and writes through no link that lies in its way", async () => {
    await symlink(join(work, "elsewhere"), join(folder, "manager"));
    await expect(unpackManager(pieces(archiveOf(ours, ["manager", "x"])), { folder })).rejects.toThrow(/EEXIST/);
  });
});
