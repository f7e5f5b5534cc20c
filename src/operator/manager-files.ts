import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

/** What the operator hands to instances, as the status of each cluster tells it. */
export interface ManagerFiles {
  /** SHA-256 in hex of the manager for the operator's own architecture. */
  hash: string;
  architectures: { goArch: string; hash: string }[];
}

const goArchitectures: Record<string, string> = { x64: "amd64", arm64: "arm64", ppc64: "ppc64le", s390x: "s390x" };

/** Architecture names as Go and container images spell them. */
export function goArchitecture(arch: string): string {
  return goArchitectures[arch] ?? arch;
}

/**
 * Reads what instance managers this operator has: the runtime's own manifest, and a file per further architecture. Outside
 * of the operator's image there is none, and the hash is that of the running program.
 */
export async function readManagerFiles(options: {
  runtimeFolder: string;
  operatorFolder: string;
  program: string;
  arch: string;
}): Promise<ManagerFiles> {
  const goArch = goArchitecture(options.arch);
  const own =
    (await readManifestHash(join(options.runtimeFolder, "manifest.json"))) ?? (await hashFile(options.program));
  const others = await readOthers(options.operatorFolder);
  const architectures = new Map([...others, [goArch, own]]);
  return {
    hash: own,
    architectures: [...architectures]
      .map(([name, hash]) => ({ goArch: name, hash }))
      .sort((a, b) => (a.goArch < b.goArch ? -1 : 1)),
  };
}

async function readManifestHash(path: string): Promise<string | undefined> {
  try {
    const manifest = JSON.parse(await readFile(path, "utf8")) as { hash?: unknown };
    return typeof manifest.hash === "string" ? manifest.hash : undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new Error(`${path} cannot be read: the operator's image is damaged`, { cause: error });
  }
}

async function readOthers(folder: string): Promise<[string, string][]> {
  let names: string[];
  try {
    names = await readdir(folder);
  } catch {
    return [];
  }
  const managers = names.filter((it) => it.startsWith("manager_"));
  return Promise.all(
    managers.map(
      async (name): Promise<[string, string]> => [name.slice("manager_".length), await hashFile(join(folder, name))],
    ),
  );
}

async function hashFile(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest("hex");
}
