import type { InstanceContext } from "../instance-context.ts";

export interface ToolOptions {
  env?: Record<string, string>;
  umask?: number;
}

/** Runs one of PostgreSQL's programs, its output in the log line by line; fails with the end of its error output. */
export async function runTool(
  context: InstanceContext,
  program: string,
  args: readonly string[],
  options: ToolOptions = {},
): Promise<void> {
  const output = context.logger.child({ logger: program });
  const last: string[] = [];
  const { code, signal } = await context.processes.run(program, args, {
    env: { ...context.settings.environment },
    ...options,
    onLine: (pipe, line) => {
      output.info(line, { pipe });
      if (pipe === "stderr") last.push(line);
      if (last.length > 5) last.shift();
    },
  });
  if (code !== 0) throw new Error(`${program} failed (${code ?? signal}): ${last.join(" | ") || "no output"}`);
}
