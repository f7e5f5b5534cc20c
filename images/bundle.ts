import { existsSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { repository } from "./cache.ts";

/** The programs that the runtime carries, by the name of their bundle. */
export const programs = {
  "manager.cjs": join(repository, "src", "bin", "manager.ts"),
  "operator.cjs": join(repository, "src", "bin", "operator.ts"),
} as const;

/** The plugin's program, which has an image of its own. */
export const pluginProgram = join(repository, "src", "bin", "barman-cloud.ts");

/**
 * Bundles one program into a single CommonJS text; so a program may not wait at its top level.
 *
 * Not minified: with undici, pg, pino and prom-client a minified bundle that keeps names started with 74.5 MB resident,
 * the plain one with 71.7 MB and as fast, and its stack traces can be read.
 */
export async function bundleProgram(entry: string): Promise<Uint8Array> {
  if (!existsSync(entry)) throw new Error(`There is no program to bundle at ${entry}.`);
  const result = await build({
    entryPoints: [entry],
    absWorkingDir: repository,
    bundle: true,
    write: false,
    platform: "node",
    target: "node24",
    format: "cjs",
    legalComments: "none",
    logLevel: "silent",
    // Optional native halves of libraries, looked for and done without.
    external: ["pg-native", "pg-cloudflare"],
    define: { "process.env.NODE_ENV": '"production"' },
  });
  const [file] = result.outputFiles;
  if (!file) throw new Error(`Bundling ${entry} gave no output.`);
  return file.contents;
}
