import type { Cluster } from "../../api/generated/cluster.ts";
import { annotations } from "../../api/labels.ts";

/** Time after which a volume without a finished write counts as dead, in milliseconds. */
const defaultLimitMs = 10_000;

/**
 * The folders that a running instance writes to, one per volume, and how long each may be silent (0 = not probed). A volume that
 * the Cluster asks for and that this pod, being older, does not have is none that could be silent. `mounts` is the text of
 * the process's mountinfo; `undefined` leaves only the data to be probed.
 */
export function planVolumeProbe(
  cluster: Cluster | undefined,
  places: { pgData: string; walVolume: string; tablespaces: string },
  mounts: string | undefined,
): { folders: string[]; limitMs: number } {
  const asked = (cluster?.spec.tablespaces ?? []).map(({ name }) => `${places.tablespaces}/${name}`);
  if (cluster?.spec.walStorage) asked.unshift(places.walVolume);
  // The fifth field of each line is where it is mounted.
  const mounted = new Set((mounts ?? "").split("\n").map((line) => line.split(" ")[4]));
  const folders = [places.pgData.replace(/\/[^/]*\/?$/, "") || "/", ...asked.filter((it) => mounted.has(it))];
  const text = cluster?.metadata.annotations?.[annotations.diskProbeSeconds];
  const seconds = text ? Number(text) : Number.NaN;
  return { folders, limitMs: Number.isFinite(seconds) && seconds >= 0 ? seconds * 1_000 : defaultLimitMs };
}
