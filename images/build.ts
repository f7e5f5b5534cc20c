import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { buildLauncher } from "../launcher/build.ts";
import { ensureImageArchives, type ImageArchive } from "./archives.ts";
import { repository } from "./cache.ts";
import { chooseEngine } from "./engine.ts";
import { buildLibrary } from "./library.ts";
import { buildRuntime } from "./runtime.ts";

const usage = `Usage: npm run build -- [WHAT] [OPTION ...]

WHAT
  lib        the library with its types: build/lib
  programs   launcher and runtime: build/launcher, build/image/runtime
  images     the operator's image, the plugin's and those of PostgreSQL 17 and 18, as archives in the cache;
             loaded into the local cluster when one is running
  all        everything above (default)

OPTIONS
  --only NAME       build this image only; may be repeated
  --registry HOST   push the images to HOST (a registry, with a path if wanted) instead of loading them
  --help            this text
`;

const started = Date.now();
const log = (line: string): void => {
  process.stdout.write(`${((Date.now() - started) / 1000).toFixed(1).padStart(6)} s  ${line}\n`);
};

interface ImageWishes {
  only?: string[];
  registry?: string;
}

async function buildImages({ only, registry }: ImageWishes): Promise<void> {
  const archives = await ensureImageArchives({ log, ...(only ? { only } : {}) });
  for (const { name, path, digest } of archives) log(`${name}  ${digest.slice(0, 19)}  ${path}`);
  if (registry) await pushImages(archives, registry);
  else await loadImages(archives);
}

async function pushImages(archives: readonly ImageArchive[], registry: string): Promise<void> {
  const engine = await chooseEngine(log);
  for (const { name, path } of archives) {
    const target = `${registry.replace(/\/+$/, "")}/${name.replace(/^[^/]*\//, "")}`;
    log(`pushing ${target}`);
    await engine.pushArchive(path, name, target);
  }
}

interface ImageLoader {
  loadImageArchive(path: string): Promise<unknown>;
}

/** Loads into the local cluster, if this clone has one running. */
async function loadImages(archives: readonly ImageArchive[]): Promise<void> {
  const module = join(repository, "local", "cluster", "load-image.ts");
  if (!existsSync(module)) return;
  const { loadImageArchive } = (await import(module)) as ImageLoader;
  for (const { name, path } of archives) {
    if (await loadImageArchive(path)) log(`${name}: loaded into the local cluster`);
  }
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      help: { type: "boolean", short: "h", default: false },
      only: { type: "string", multiple: true },
      registry: { type: "string" },
    },
  });
  // `npm run build -- images` arrives as `all images`: the last word counts.
  const what = positionals.at(-1) ?? "all";
  if (values.help) {
    process.stdout.write(usage);
    return;
  }
  if (!["lib", "programs", "images", "all"].includes(what))
    throw new Error(`There is nothing to build by the name ${what}.\n\n${usage}`);
  if (what === "lib" || what === "all") log(`library: ${await buildLibrary()}`);
  if (what === "programs" || what === "all") {
    log(`launcher: ${await buildLauncher()}`);
    log(`runtime: ${await buildRuntime()}`);
  }
  if (what === "images" || what === "all") await buildImages(values);
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
