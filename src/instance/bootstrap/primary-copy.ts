import { primaryConninfo } from "../configuration-files.ts";
import { diskFullError } from "../disk-full.ts";
import type { InstanceContext } from "../instance-context.ts";

/** Copies the primary into a folder that is missing or empty, with the WAL that makes the copy consistent. */
export async function copyPrimary(
  context: InstanceContext,
  options: { folder: string; host?: string; walFolder?: string | undefined; signal?: AbortSignal },
): Promise<void> {
  const { processes, logger, settings } = context;
  const host = options.host === undefined ? {} : { host: options.host };
  const conninfo = `${primaryConninfo(context, host)} connect_timeout=5 options='-c wal_sender_timeout=0s'`;
  const waldir = options.walFolder === undefined ? [] : ["--waldir", options.walFolder];
  const output = logger.child({ logger: "pg_basebackup" });
  const lines: string[] = [];
  // The checkpoint at the start of the backup is asked for at once: a spread one would only delay the new standby.
  const args = ["-D", options.folder, "-v", "-w", "-d", conninfo, "--checkpoint=fast", ...waldir];
  const result = await processes.run("pg_basebackup", args, {
    env: { ...settings.environment },
    ...(options.signal === undefined ? {} : { signal: options.signal }),
    onLine: (pipe, line) => {
      lines.push(line);
      if (lines.length > 20) lines.shift();
      output.info(line, { pipe });
    },
  });
  if (result.code === 0) return;
  const message = `pg_basebackup failed (${result.code ?? result.signal}): ${lines.at(-1) ?? "no output"}`;
  throw diskFullError(message, lines) ?? new Error(message);
}
