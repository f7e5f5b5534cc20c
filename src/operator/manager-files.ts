import { createHash } from "node:crypto";
import { readdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import {
  type ManagerArchive,
  openManagerArchive,
  readFileSlowly,
  readManagerManifest,
} from "../store/manager-archive.ts";

/** What the operator hands to instances, as the status of each cluster tells it. */
export interface ManagerFiles {
  /** SHA-256 in hex of the manager for the operator's own architecture. */
  hash: string;
  architectures: { goArch: string; hash: string }[];
  /** Short hash of the commit that the operator was built from; `none` where that is not known. */
  commit: string;
  /** The manager for an architecture, to be sent to an instance; read from the image while it is sent. */
  open(goArch: string): Promise<ManagerArchive>;
}

const goArchitectures: Record<string, string> = { x64: "amd64", arm64: "arm64", ppc64: "ppc64le", s390x: "s390x" };

/** Architecture names as Go and container images spell them. */
export function goArchitecture(arch: string): string {
  return goArchitectures[arch] ?? arch;
}

export interface ManagerPlaces {
  /** Has the launcher beside it. */
  runtimeFolder: string;
  operatorFolder: string;
  program: string;
  arch: string;
}

/**
 * Reads what instance managers this operator has: the runtime's own manifest, and a file per further architecture. Outside
 * of the operator's image there is none, and the hash is that of the running program.
 */
export async function readManagerFiles(places: ManagerPlaces): Promise<ManagerFiles> {
  const goArch = goArchitecture(places.arch);
  const manifest = await readManagerManifest(places.runtimeFolder);
  const own = manifest?.hash ?? (await hashFile(places.program));
  const others = await listArchives(places.operatorFolder);
  const hashes = new Map<string, string>();
  for (const [name, path] of others) hashes.set(name, await hashFile(path));
  hashes.set(goArch, own);
  return {
    hash: own,
    commit: manifest?.commit ?? "none",
    architectures: [...hashes]
      .map(([name, hash]) => ({ goArch: name, hash }))
      .sort((a, b) => (a.goArch < b.goArch ? -1 : 1)),
    async open(wanted) {
      if (wanted === goArch && manifest) {
        const launcher = join(dirname(places.runtimeFolder), "manager");
        return openManagerArchive({ launcher, runtimeFolder: places.runtimeFolder, release: manifest });
      }
      const path = wanted === goArch ? undefined : others.get(wanted);
      if (path) return openFile(path);
      throw new Error(`this operator carries no instance manager for ${wanted} that could be sent: use its image`);
    },
  };
}

async function openFile(path: string): Promise<ManagerArchive> {
  const { size } = await stat(path);
  return { size, read: () => readFileSlowly(path) };
}

async function listArchives(folder: string): Promise<Map<string, string>> {
  let names: string[];
  try {
    names = await readdir(folder);
  } catch {
    return new Map();
  }
  const archives = names.filter((it) => it.startsWith("manager_"));
  return new Map(archives.map((name) => [name.slice("manager_".length), join(folder, name)]));
}

async function hashFile(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of readFileSlowly(path)) hash.update(chunk);
  return hash.digest("hex");
}
