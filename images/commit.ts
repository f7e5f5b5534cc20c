import { existsSync } from "node:fs";
import { join } from "node:path";
import { repository } from "./cache.ts";
import { runCommand } from "./command.ts";

/** What a release says it is built from, where git is not to be asked. */
export function statedCommit(): string | undefined {
  return process.env["CNPG_TS_COMMIT"] || undefined;
}

/** Short hash of the commit that is being built; `none` where nobody says it and there is no repository to tell it. */
export async function commitOfBuild(): Promise<string> {
  const stated = statedCommit();
  if (stated !== undefined) return stated;
  // A copy without history may lie within somebody else's repository.
  if (!existsSync(join(repository, ".git"))) return "none";
  const hash = await runCommand("git", ["rev-parse", "--short", "HEAD"], { cwd: repository }).catch(() => "none");
  return hash.trim();
}
