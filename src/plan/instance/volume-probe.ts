import type { Cluster } from "../../api/generated/cluster.ts";
import { annotations } from "../../api/labels.ts";

/** Time after which a volume without a finished write counts as dead, in milliseconds. */
const defaultLimitMs = 10_000;

/** The folders that a running instance writes to, one per volume, and how long each may be silent (0 = not probed). */
export function planVolumeProbe(
  cluster: Cluster | undefined,
  places: { pgData: string; walVolume: string; tablespaces: string },
): { folders: string[]; limitMs: number } {
  const folders = [places.pgData.replace(/\/[^/]*\/?$/, "") || "/"];
  if (cluster?.spec.walStorage) folders.push(places.walVolume);
  for (const tablespace of cluster?.spec.tablespaces ?? []) folders.push(`${places.tablespaces}/${tablespace.name}`);
  const text = cluster?.metadata.annotations?.[annotations.diskProbeSeconds];
  const seconds = text ? Number(text) : Number.NaN;
  return { folders, limitMs: Number.isFinite(seconds) && seconds >= 0 ? seconds * 1_000 : defaultLimitMs };
}
