/** What the launcher sets for this process alone: its channel, and how its memory allocator behaves. */
const runtimeOnly: readonly string[] = ["CNPG_LAUNCHER_FD", "MALLOC_ARENA_MAX", "MALLOC_TRIM_THRESHOLD_"];

/** Environment for a child program, the postmaster included: everything but what is meant for the runtime itself. */
export function childEnvironment(environment: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const entries = Object.entries(environment).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && !runtimeOnly.includes(entry[0]),
  );
  return Object.fromEntries(entries);
}
