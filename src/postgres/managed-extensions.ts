/** An extension that a user turns on by giving one of its parameters. */
export interface ManagedExtension {
  name: string;
  /** Whether `CREATE EXTENSION` in each database belongs to it. */
  createsObjects: boolean;
}

/** In the order in which their libraries are preloaded. */
export const managedExtensions: readonly ManagedExtension[] = [
  { name: "pgaudit", createsObjects: true },
  { name: "pg_stat_statements", createsObjects: true },
  { name: "auto_explain", createsObjects: false },
  { name: "pg_failover_slots", createsObjects: false },
];

/** Extensions whose parameters the user gave. */
export function usedExtensions(parameters: Readonly<Record<string, string>>): ManagedExtension[] {
  const names = Object.keys(parameters);
  return managedExtensions.filter((extension) => names.some((name) => name.startsWith(`${extension.name}.`)));
}

/** Value of `shared_preload_libraries`: the user's own in their order, then those of used managed extensions. */
export function buildPreloadLibraries(
  parameters: Readonly<Record<string, string>>,
  userLibraries: readonly string[] = [],
): string {
  const libraries = [...userLibraries, ...usedExtensions(parameters).map((extension) => extension.name)];
  return [...new Set(libraries.filter((library) => library !== ""))].join(",");
}
