/**
 * Answer (503) to `GET /pg/status` while volumes take no writes: PostgreSQL is down then, and nothing of it can be looked at
 * without waiting for a disk that may never answer.
 */
export interface VolumeFailure {
  error: { code: "VOLUME_SILENT"; message: string };
  /** Where the volumes are mounted in the container. */
  folders: readonly string[];
  /** Since they were given up, in milliseconds. */
  silentMs: number;
}

export function describeVolumeFailure(folders: readonly string[], silentMs: number): VolumeFailure {
  const message = `no write to ${folders.join(" or ")} has come back since everything was killed for it ${Math.round(silentMs / 1_000)} s ago`;
  return { error: { code: "VOLUME_SILENT", message }, folders, silentMs };
}

/** Reads such an answer; `undefined` for every other body. */
export function parseVolumeFailure(body: string): VolumeFailure | undefined {
  let value: Partial<VolumeFailure> | null;
  try {
    value = JSON.parse(body) as Partial<VolumeFailure> | null;
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null || value.error?.code !== "VOLUME_SILENT") return undefined;
  const { error, folders, silentMs } = value;
  if (!Array.isArray(folders) || folders.length === 0 || !folders.every((it) => typeof it === "string"))
    return undefined;
  if (typeof silentMs !== "number" || typeof error.message !== "string") return undefined;
  return { error, folders, silentMs };
}
