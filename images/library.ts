import { existsSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { repository } from "./cache.ts";
import { runCommand } from "./command.ts";

/** Compiles the constructs, and what they import, to JavaScript with types; gives the folder. */
export async function buildLibrary(): Promise<string> {
  const entry = join(repository, "constructs", "index.ts");
  if (!existsSync(entry)) throw new Error(`There is no library to build at ${entry}.`);
  const build = join(repository, "build");
  const output = join(build, "lib");
  await mkdir(build, { recursive: true });
  const config = join(build, "tsconfig.lib.json");
  const settings = {
    extends: "../tsconfig.json",
    compilerOptions: { noEmit: false, declaration: true, rootDir: "..", outDir: "lib", newLine: "lf" },
    files: ["../constructs/index.ts", "../src/plugin/framework/index.ts"],
    include: [],
  };
  await writeFile(config, `${JSON.stringify(settings, null, 2)}\n`);
  await rm(output, { recursive: true, force: true });
  const compiler = join(repository, "node_modules", "typescript", "bin", "tsc");
  await runCommand(process.execPath, [compiler, "-p", config]);
  return output;
}
