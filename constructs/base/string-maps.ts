/**
 * Paths of maps whose values the API wants as text. Writers give numbers and booleans there by mistake
 * (`max_connections: 200`), which the API server refuses with an error far from the cause.
 */
const stringMapPaths: Readonly<Record<string, readonly string[]>> = {
  Cluster: [
    "postgresql.parameters",
    "plugins.*.parameters",
    "externalClusters.*.connectionParameters",
    "externalClusters.*.plugin.parameters",
    "inheritedMetadata.labels",
    "inheritedMetadata.annotations",
  ],
  Pooler: ["pgbouncer.parameters"],
  Backup: ["pluginConfiguration.parameters"],
  ScheduledBackup: ["pluginConfiguration.parameters"],
  Publication: ["parameters"],
  Subscription: ["parameters"],
};

/** Returns a copy of a spec in which numbers and booleans inside the known text maps are text. */
export function stringifyMaps<T extends object>(kind: string, spec: T): T {
  let result: unknown = spec;
  for (const path of stringMapPaths[kind] ?? []) result = mapAt(result, path.split("."));
  return result as T;
}

function mapAt(value: unknown, path: readonly string[]): unknown {
  if (typeof value !== "object" || value === null) return value;
  const [head, ...rest] = path;
  if (head === undefined) {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, asText(item)]));
  }
  if (head === "*") return Array.isArray(value) ? value.map((item) => mapAt(item, rest)) : value;
  if (!(head in value)) return value;
  return { ...value, [head]: mapAt((value as Record<string, unknown>)[head], rest) };
}

function asText(value: unknown): unknown {
  return typeof value === "number" || typeof value === "boolean" ? String(value) : value;
}
