import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { withFileLock } from "../process/file-lock.ts";
import { tryRun } from "../process/run.ts";
import { type Report, reportToStderr, step } from "../terminal/progress.ts";
import { UserError } from "../terminal/user-error.ts";
import { cacheKey, cacheRoot } from "./cache.ts";
import { allTools, buildArguments, type GoTool, type GoToolName } from "./catalogue.ts";

/** Absolute path of a built program, whether it is there or not. */
export function toolPath(name: GoToolName): string {
  const tool = find(name);
  return join(moduleCache(tool.module), tool.name);
}

/** Builds the programs that the cache does not hold yet; several clones may call it at once. */
export async function ensureTools(names: readonly GoToolName[], report: Report = reportToStderr): Promise<void> {
  if (names.every((name) => existsSync(toolPath(name)))) return;
  await withFileLock(
    join(cacheRoot(), "bin", "lock"),
    () => report("→ Waiting for another build of the Kubernetes programs to finish (at most 15 minutes)"),
    async () => {
      for (const tool of allTools) {
        if (names.includes(tool.name) && !existsSync(toolPath(tool.name))) await build(tool, report);
      }
    },
  );
}

async function build(tool: GoTool, report: Report): Promise<void> {
  const folder = moduleCache(tool.module);
  mkdirSync(folder, { recursive: true });
  removeLeftovers(folder);
  const temporary = join(folder, `.${tool.name}.${process.pid}`);
  await step(report, `Building ${tool.name} from source, once per machine`, tool.about, async () => {
    const options = { cwd: moduleFolder(tool.module), env: { CGO_ENABLED: "0" } };
    const { code, stderr } = await tryRun("go", buildArguments(tool, temporary), options);
    if (code !== 0) {
      const words = stderr.trim().split("\n").slice(-5).join("\n");
      throw new UserError(`Building ${tool.name} failed; is the Go module proxy reachable? Go says: ${words}`);
    }
    renameSync(temporary, join(folder, tool.name));
  });
}

/** An interrupted build leaves its temporary file; the lock is held, so none of them is in use. */
function removeLeftovers(folder: string): void {
  for (const entry of readdirSync(folder)) if (entry.startsWith(".")) rmSync(join(folder, entry));
}

function moduleCache(module: string): string {
  const folder = moduleFolder(module);
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) =>
    /\.(go|mod|sum)$/.test(file),
  );
  const sources = files.sort().map((file) => readFileSync(join(folder, file), "utf8"));
  const tools = allTools.filter((tool) => tool.module === module);
  return join(cacheRoot(), "bin", `${module}-${cacheKey(sources, tools, process.arch)}`);
}

function moduleFolder(module: string): string {
  return join(import.meta.dirname, module);
}

function find(name: GoToolName): GoTool {
  const tool = allTools.find((each) => each.name === name);
  if (!tool) throw new Error(`no tool is called ${name}`);
  return tool;
}
