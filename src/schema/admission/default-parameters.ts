import { archiveMode } from "../../api/cluster-facts.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { imageMajor } from "../../postgres/image-version.ts";
import { defaultParameters, fixedParameters, mandatoryParameters } from "../../postgres/parameters.ts";

/** The user's PostgreSQL parameters with the defaults below them; `undefined` when the major version is not known. */
export function defaultParametersOf(
  cluster: Cluster,
  mode: "preserve" | "enforce",
): Record<string, string> | undefined {
  if (specMajor(cluster) === undefined) return undefined;
  const given = Object.entries(cluster.spec.postgresql?.parameters ?? {});
  const user = Object.fromEntries(mode === "preserve" ? given : given.filter(([name]) => !fixedParameters.has(name)));
  return sortKeys({ ...defaultParameters, ...user, archive_mode: archiveMode(cluster) });
}

/** The value that a fixed parameter has, if it has one at all. */
export function fixedParameterValue(cluster: Cluster, name: string): string | undefined {
  if (name === "archive_mode") return archiveMode(cluster);
  return { ...defaultParameters, ...mandatoryParameters }[name];
}

/** Major version that the spec asks for. */
export function specMajor(cluster: Cluster): number | undefined {
  return cluster.spec.imageCatalogRef?.major ?? imageMajor(cluster.spec.imageName ?? "");
}

function sortKeys(map: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(map).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
}
