import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Generated files by path from the project's root. */
export type Outputs = ReadonlyMap<string, string>;

/** A generated file that is not as it should be. */
export interface Drift {
  readonly path: string;
  readonly problem: "missing" | "out of date" | "left over";
}

/** Folders in which every file is generated, so that a file nobody generates any more is noticed. */
const ownedFolders = ["constructs/crds/core/generated", "imports", "src/api/generated", "src/schema/generated"];

/** Compares the files on disk with what they should be. */
export function findDrift(root: string, outputs: Outputs): readonly Drift[] {
  const changed = [...outputs].flatMap(([path, content]): Drift[] => {
    const current = read(join(root, path));
    if (current === content) return [];
    return [{ path, problem: current === undefined ? "missing" : "out of date" }];
  });
  const leftOver = ownedFolders
    .flatMap((folder) => list(join(root, folder)).map((name) => `${folder}/${name}`))
    .filter((path) => !outputs.has(path))
    .map((path): Drift => ({ path, problem: "left over" }));
  return [...changed, ...leftOver];
}

/** Brings the files on disk to what they should be. */
export function repairDrift(root: string, outputs: Outputs, drift: readonly Drift[]): void {
  for (const { path, problem } of drift) {
    const target = join(root, path);
    if (problem === "left over") {
      rmSync(target);
      continue;
    }
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, outputs.get(path) ?? "");
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}
