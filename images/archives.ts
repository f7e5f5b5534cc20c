import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { copyFile, cp, mkdir, readdir, readFile, rename, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { buildLauncher } from "../launcher/build.ts";
import { ensureAptPackages } from "./apt.ts";
import { baseRecipe, ensurePostgresBase, type PostgresMajor, suites } from "./base.ts";
import { cacheFolder, hashFile, hashText, repository } from "./cache.ts";
import { runCommand } from "./command.ts";
import { statedCommit } from "./commit.ts";
import { chooseEngine, type ImageEngine } from "./engine.ts";
import { withFileLock } from "./lock.ts";
import { buildPluginRuntime, layOutPluginRoot } from "./plugin-root.ts";
import { buildRuntime, readManifest } from "./runtime.ts";

/** Name of the operator's image in the local cluster. */
export const operatorImage = "localhost/cnpg-ts:dev";

/** Name of the barman-cloud plugin's image, which is also that of its sidecar, in the local cluster. */
export const pluginImage = "localhost/plugin-barman-cloud:dev";

/** Name of the PostgreSQL image of a major version in the local cluster. */
export const postgresImage = (major: PostgresMajor): string => `localhost/postgresql:${major}`;

export interface ImageArchive {
  name: string;
  /** A docker-archive (`docker save` format). */
  path: string;
  /** Digest of the image's configuration, which is its identity. */
  digest: string;
}

export interface ImageArchivesOptions {
  /** Names of the images wanted. @default all */
  only?: readonly string[];
  log?: (line: string) => void;
}

/** How to tell whether an image is up to date, and how to build it. */
interface Recipe {
  name: string;
  key: string;
  build(engine: ImageEngine, archive: string): Promise<void>;
}

/**
 * Makes the archives of our images, side by side, and gives them in the order operator, plugin, PostgreSQL 17, PostgreSQL 18.
 *
 * Archives are kept by the hash of what goes in: unchanged inputs cost no build.
 */
export async function ensureImageArchives(options: ImageArchivesOptions = {}): Promise<ImageArchive[]> {
  const log = options.log ?? (() => {});
  let engine: Promise<ImageEngine> | undefined;
  const getEngine = () => {
    engine ??= chooseEngine(log);
    return engine;
  };
  const wanted = (name: string) => !options.only || options.only.includes(name);
  const majors = (Object.keys(suites) as PostgresMajor[]).filter((major) => wanted(postgresImage(major)));
  const recipes = [
    ...(wanted(operatorImage) ? [operatorRecipe(log)] : []),
    ...(wanted(pluginImage) ? [pluginRecipe(log)] : []),
    ...majors.map((major) => postgresRecipe(major, log)),
  ];
  const unknown = options.only?.filter((name) => !known.includes(name)) ?? [];
  if (unknown.length > 0) throw new Error(`No such image: ${unknown.join(", ")}. Known: ${known.join(", ")}.`);
  const results = await Promise.allSettled(recipes.map(async (recipe) => ensureArchive(await recipe, getEngine, log)));
  // All have ended before the first failure is told, so that none goes on in the background.
  return results.map((result) => {
    if (result.status === "rejected") throw result.reason;
    return result.value;
  });
}

const known = [operatorImage, pluginImage, ...(Object.keys(suites) as PostgresMajor[]).map(postgresImage)];

async function ensureArchive(
  recipe: Recipe,
  getEngine: () => Promise<ImageEngine>,
  log: (line: string) => void,
): Promise<ImageArchive> {
  const folder = cacheFolder("images");
  const stem = recipe.name.replace(/^.*\//, "").replace(":", "-");
  const path = join(folder, `${stem}.${recipe.key.slice(0, 16)}.tar`);
  if (!existsSync(path)) {
    await withFileLock(join(folder, `${stem}.lock`), async () => {
      if (!existsSync(path)) await buildArchive(recipe, await getEngine(), path, log);
      await removeOlder(folder, stem, 3);
    });
  }
  await utimes(path, new Date(), new Date()); // in use: the last to be removed
  return { name: recipe.name, path, digest: await readDigest(path) };
}

async function buildArchive(recipe: Recipe, engine: ImageEngine, path: string, log: (line: string) => void) {
  const unfinished = `${path}.${randomUUID()}.part`;
  const started = Date.now();
  log(`${recipe.name}: building with ${engine.kind}`);
  try {
    await recipe.build(engine, unfinished);
    await rename(unfinished, path);
  } finally {
    await rm(unfinished, { force: true });
  }
  const size = Math.round((await stat(path)).size / 1e6);
  log(`${recipe.name}: ready after ${Math.round((Date.now() - started) / 1000)} s (${size} MB)`);
}

async function postgresRecipe(major: PostgresMajor, log: (line: string) => void): Promise<Recipe> {
  const context = join(repository, "images", "postgresql");
  const dockerfile = join(context, "Dockerfile");
  return {
    name: postgresImage(major),
    key: hashText(await readFile(dockerfile, "utf8"), process.arch, ...baseRecipe(major)),
    async build(engine, archive) {
      const base = await ensurePostgresBase(major, log);
      const build = { name: postgresImage(major), dockerfile, context, base, args: { MAJOR: major } };
      await engine.buildArchive(build, archive);
    },
  };
}

const certificates = "/etc/ssl/certs/ca-certificates.crt";

async function pluginRecipe(log: (line: string) => void): Promise<Recipe> {
  const dockerfile = join(repository, "images", "barman-cloud", "Dockerfile");
  await ensureAptPackages(["ca-certificates"], log);
  const runtime = await buildPluginRuntime();
  const { hash, version } = await readManifest(runtime);
  return {
    name: pluginImage,
    key: hashText(
      await readFile(dockerfile, "utf8"),
      await readFile(join(repository, "images", "plugin-root.ts"), "utf8"),
      hash,
      version,
      await hashFile(certificates),
    ),
    async build(engine, archive) {
      const context = join(repository, "build", "image", `barman-cloud.${randomUUID()}`);
      try {
        await layOutPluginRoot(runtime, certificates, join(context, "root"));
        await runCommand("chmod", ["-R", "u=rwX,go=rX", context]);
        await engine.buildArchive({ name: pluginImage, dockerfile, context }, archive);
      } finally {
        await rm(context, { recursive: true, force: true });
      }
    },
  };
}

async function operatorRecipe(log: (line: string) => void): Promise<Recipe> {
  const dockerfile = join(repository, "images", "operator", "Dockerfile");
  await ensureAptPackages(["ca-certificates"], log);
  const runtime = await buildRuntime();
  const { hash, version } = await readManifest(runtime);
  return {
    name: operatorImage,
    key: hashText(
      await readFile(dockerfile, "utf8"),
      hash,
      version,
      await hashFile(certificates),
      statedCommit() ?? "",
    ),
    build: (engine, archive) => buildOperator(engine, { name: operatorImage, runtime }, archive),
  };
}

/**
 * Builds an operator's image around a runtime folder that differs from this checkout's, as another release would have it,
 * and gives its archive's path; nothing of it is kept in the cache.
 */
export async function buildOperatorImage(
  options: { name: string; runtime: string; archive: string },
  log: (line: string) => void,
): Promise<string> {
  await ensureAptPackages(["ca-certificates"], log);
  await buildOperator(await chooseEngine(log), options, options.archive);
  return options.archive;
}

async function buildOperator(
  engine: ImageEngine,
  { name, runtime }: { name: string; runtime: string },
  archive: string,
): Promise<void> {
  const dockerfile = join(repository, "images", "operator", "Dockerfile");
  const context = join(repository, "build", "image", `operator.${randomUUID()}`);
  try {
    await mkdir(join(context, "etc", "ssl", "certs"), { recursive: true });
    await cp(runtime, join(context, "runtime"), { recursive: true });
    await copyFile(await buildLauncher(), join(context, "manager"));
    await copyFile(certificates, join(context, "etc", "ssl", "certs", "ca-certificates.crt"));
    // Whatever the umask was: the image's user must be able to read, and the same inputs give the same image.
    await runCommand("chmod", ["-R", "u=rwX,go=rX", context]);
    await engine.buildArchive({ name, dockerfile, context }, archive);
  } finally {
    await rm(context, { recursive: true, force: true });
  }
}

async function readDigest(archive: string): Promise<string> {
  const text = await runCommand("tar", ["-xOf", archive, "manifest.json"]);
  const [image] = JSON.parse(text) as { Config: string }[];
  // Written as HASH.json by some tools, as blobs/sha256/HASH by others.
  const hash = /([0-9a-f]{64})(\.json)?$/.exec(image?.Config ?? "")?.[1];
  if (!hash) throw new Error(`The archive ${archive} names no image configuration.`);
  return `sha256:${hash}`;
}

async function removeOlder(folder: string, stem: string, keep: number): Promise<void> {
  const names = (await readdir(folder)).filter((name) => name.startsWith(`${stem}.`) && name.endsWith(".tar"));
  const files = await Promise.all(
    names.map(async (name) => ({ path: join(folder, name), at: (await stat(join(folder, name))).mtimeMs })),
  );
  const old = files.sort((a, b) => b.at - a.at).slice(keep);
  await Promise.all(old.map(({ path }) => rm(path, { force: true })));
}
