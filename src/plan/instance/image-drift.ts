import type { Cluster } from "../../api/generated/cluster.ts";

/**
 * The images that the operator says the data folder is run by, PostgreSQL's and those of its extensions, in an order of their
 * own; `undefined` while it has not said.
 */
export function runningImages(cluster: Cluster): string[] | undefined {
  const info = cluster.status?.pgDataImageInfo;
  if (!info) return undefined;
  const extensions = (info.extensions ?? []).map(({ name, image }) => `${name}=${image?.reference ?? ""}`);
  return [info.image, ...extensions.sort()];
}

/**
 * Whether PostgreSQL has to look at its settings again although no file changed (reference: instance manager §5.8): other
 * images bring other defaults and libraries. What was never known has not changed.
 */
export function hasImageDrift(before: readonly string[] | undefined, now: readonly string[] | undefined): boolean {
  if (!before || !now) return false;
  return before.length !== now.length || before.some((image, index) => image !== now[index]);
}
