import type { PluginEndpoint } from "./endpoint.ts";

/** Calls that move data: they take as long as they take, and end with the connection or the caller's signal. */
const unbounded = new Set(["Backup.Backup", "RestoreJobHooks.Restore", "WAL.Archive", "WAL.Restore"]);

/** What a scrape or the configuration of PostgreSQL waits for must not hang on one plugin. */
const short = new Set(["Identity.Probe", "Metrics.Define", "Metrics.Collect", "Postgres.EnrichConfiguration"]);

/** Milliseconds that a call may take by default; `null` means no limit. */
export function defaultDeadlineMs(endpoint: PluginEndpoint, label: string): number | null {
  if (unbounded.has(label)) return null;
  if (short.has(label)) return endpoint.kind === "socket" ? 10_000 : 30_000;
  return 30_000;
}
