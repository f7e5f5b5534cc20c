import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { run } from "../../process/run.ts";
import { cacheRoot } from "../../tools/cache.ts";

/** The image of every pod's first process, and of the pods that make and remove volume folders. */
export const nodeImage = "localhost/cnpg-ts/node:1";
/** Path of the volume program in that image. */
export const volumeProgram = "/volume";

export interface NodePrograms {
  /** Static program that waits and reaps; first process of each namespace. */
  pause: string;
  /** docker-archive of the node image. */
  archive: string;
}

/** Compiles the two C programs and packs them as an image; later calls find them in the cache. */
export async function ensureNodePrograms(): Promise<NodePrograms> {
  const sources = ["pause.c", "volume.c", "pack.ts"].map((file) => readFileSync(join(import.meta.dirname, file)));
  const key = createHash("sha256").update(Buffer.concat(sources)).digest("hex").slice(0, 16);
  const folder = join(cacheRoot(), "bin", `node-${key}`);
  const programs = { pause: join(folder, "pause"), archive: join(folder, "image.tar") };
  if (existsSync(folder)) return programs;
  mkdirSync(join(cacheRoot(), "bin"), { recursive: true });
  const temporary = mkdtempSync(join(cacheRoot(), "bin", ".node-"));
  try {
    await compileAndPack(temporary);
    renameSync(temporary, folder);
  } catch (error) {
    rmSync(temporary, { recursive: true, force: true });
    // Another clone may have been quicker: its result is the same.
    if (!existsSync(folder)) throw error;
  }
  return programs;
}

async function compileAndPack(folder: string): Promise<void> {
  const root = join(folder, "root");
  mkdirSync(root);
  for (const program of ["pause", "volume"]) {
    const source = join(import.meta.dirname, `${program}.c`);
    await run("gcc", ["-static", "-Os", "-s", "-Wall", "-Wextra", "-Werror", "-o", join(root, program), source]);
  }
  await writeTar(root, ["pause", "volume"], join(folder, "layer.tar"));
  const config = imageConfig(digest(join(folder, "layer.tar")), process.arch === "arm64" ? "arm64" : "amd64");
  const configName = `${createHash("sha256").update(config).digest("hex")}.json`;
  writeFileSync(join(folder, configName), config);
  writeFileSync(
    join(folder, "manifest.json"),
    JSON.stringify([{ Config: configName, RepoTags: [nodeImage], Layers: ["layer.tar"] }]),
  );
  await writeTar(folder, ["manifest.json", configName, "layer.tar"], join(folder, "image.tar"));
  copyFileSync(join(root, "pause"), join(folder, "pause"));
}

function writeTar(folder: string, files: readonly string[], target: string): Promise<string> {
  const fixed = ["--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"];
  return run("tar", ["--create", `--file=${target}`, `--directory=${folder}`, ...fixed, ...files]);
}

function imageConfig(layer: string, architecture: string): string {
  return JSON.stringify({
    architecture,
    os: "linux",
    config: { Entrypoint: ["/pause"] },
    rootfs: { type: "layers", diff_ids: [`sha256:${layer}`] },
    history: [{ created_by: "cnpg-ts local" }],
  });
}

function digest(file: string): string {
  return createHash("sha256").update(readFileSync(file)).digest("hex");
}
