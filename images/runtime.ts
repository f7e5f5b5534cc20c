import { randomUUID } from "node:crypto";
import { chmod, copyFile, mkdir, readFile, realpath, rename, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { buildLauncher } from "../launcher/build.ts";
import { hashManagerArchive, openManagerArchive } from "../src/store/manager-archive.ts";
import { bundleProgram, programs } from "./bundle.ts";
import { cacheFolder, hashFile, hashText, repository } from "./cache.ts";
import { runCommand } from "./command.ts";
import { commitOfBuild, statedCommit } from "./commit.ts";

/** What `/runtime/manifest.json` says; the hash is that of the archive in which an operator sends launcher and runtime. */
export interface RuntimeManifest {
  version: string;
  arch: string;
  hash: string;
  /** What it was built from. Not in what is hashed: a commit that changes no program replaces none. */
  commit: string;
}

export interface RuntimeOptions {
  /** Entry files by the name of their bundle. */
  programs?: Readonly<Record<string, string>>;
  /** @default build/image/runtime in the repository */
  output?: string;
}

/**
 * Options for node itself, which the launcher passes on. A small young generation keeps bursts of garbage small; the
 * middle compiler costs 3 MB of resident code and only shortens the warm-up, the optimizing one stays.
 */
const nodeArgs = ["--max-semi-space-size=1", "--no-maglev"];

/**
 * Assembles the runtime that the launcher starts: node, its loader and libraries, and the bundled programs.
 *
 * Gives the folder. Unchanged inputs leave the folder as it is.
 */
export async function buildRuntime(options: RuntimeOptions = {}): Promise<string> {
  const output = options.output ?? join(repository, "build", "image", "runtime");
  const draft = `${output}.${randomUUID()}`;
  await mkdir(join(draft, "lib"), { recursive: true });
  try {
    await fill(draft, options.programs ?? programs);
    const manifest = await describe(draft);
    const present = await readManifest(output).catch(() => undefined);
    if (present && isSameRelease(present, manifest)) return output;
    await writeFile(join(draft, "manifest.json"), `${JSON.stringify(manifest)}\n`);
    await replaceFolder(draft, output);
    return output;
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** A later commit that changes no program makes no other release, unless it is said to. */
function isSameRelease(present: RuntimeManifest, built: RuntimeManifest): boolean {
  if (present.hash !== built.hash || present.version !== built.version) return false;
  return statedCommit() === undefined ? Boolean(present.commit) : present.commit === built.commit;
}

/** Reads the manifest of an assembled runtime folder. */
export async function readManifest(folder: string): Promise<RuntimeManifest> {
  return JSON.parse(await readFile(join(folder, "manifest.json"), "utf8")) as RuntimeManifest;
}

async function fill(folder: string, entries: Readonly<Record<string, string>>): Promise<void> {
  const node = await strippedNode();
  await copyFile(node, join(folder, "node"));
  for (const library of await sharedLibraries(node)) {
    const place = join(folder, "lib", basename(library));
    await copyFile(await realpath(library), place);
    await chmod(place, 0o755);
  }
  await writeFile(join(folder, "node-args"), nodeArgs.map((arg) => `${arg}\n`).join(""));
  const bundles = Object.entries(entries).map(async ([name, entry]) =>
    writeFile(join(folder, name), await bundleProgram(entry)),
  );
  await Promise.all(bundles);
}

/** The package's node without its symbol tables: 18 MB less to copy at each pod start, same behaviour. */
async function strippedNode(): Promise<string> {
  const original = await realpath(join(repository, "node_modules", `node-linux-${process.arch}`, "bin", "node"));
  const key = hashText("strip", await hashFile(original)).slice(0, 16);
  const output = cacheFolder("node", key, "node");
  const known = await hashFile(output).catch(() => undefined);
  const recorded = await readFile(`${output}.sha256`, "utf8").catch(() => "");
  if (known && known === recorded) return output;
  await mkdir(cacheFolder("node", key), { recursive: true });
  const unfinished = `${output}.${randomUUID()}`;
  await runCommand("strip", ["--strip-all", "-o", unfinished, original]);
  await chmod(unfinished, 0o755);
  await writeFile(`${output}.sha256`, await hashFile(unfinished));
  await rename(unfinished, output);
  return output;
}

/** The loader and the libraries that a program needs on this machine. */
async function sharedLibraries(program: string): Promise<string[]> {
  const text = await runCommand("ldd", [program]);
  const paths = text.split("\n").flatMap((line) => /(?:=> |^\s*)(\/\S+) \(0x/.exec(line)?.slice(1) ?? []);
  if (!paths.some((path) => basename(path).startsWith("ld-linux")))
    throw new Error(`ldd names no glibc loader for ${program}; the runtime needs a build machine with glibc:\n${text}`);
  return paths;
}

async function describe(folder: string): Promise<RuntimeManifest> {
  const packageText = await readFile(join(repository, "package.json"), "utf8");
  const { version } = JSON.parse(packageText) as { version: string };
  const arch = process.arch === "x64" ? "amd64" : process.arch;
  const launcher = await buildLauncher();
  const archive = await openManagerArchive({ launcher, runtimeFolder: folder, release: { version, arch } });
  return { version, arch, hash: await hashManagerArchive(archive), commit: await commitOfBuild() };
}

async function replaceFolder(draft: string, place: string): Promise<void> {
  const old = `${place}.${randomUUID()}`;
  await rename(place, old).catch(() => {});
  await rename(draft, place);
  await rm(old, { recursive: true, force: true });
}
