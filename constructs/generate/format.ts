import { execFile } from "node:child_process";
import { join } from "node:path";

/** Formats generated source as the lint step wants it. */
export function formatSource(root: string, path: string, source: string): Promise<string> {
  const biome = join(root, "node_modules", ".bin", "biome");
  return new Promise((resolve, reject) => {
    const child = execFile(
      biome,
      ["format", `--stdin-file-path=${path}`],
      { cwd: root, maxBuffer: 64 * 1024 * 1024 },
      (error, formatted) =>
        error ? reject(new Error(`${path} could not be formatted.`, { cause: error })) : resolve(formatted),
    );
    child.stdin?.end(source);
  });
}

/** Formats several sources, by path. */
export async function formatSources(root: string, sources: readonly [string, string][]): Promise<[string, string][]> {
  return Promise.all(
    sources.map(async ([path, source]): Promise<[string, string]> => [path, await formatSource(root, path, source)]),
  );
}
