import { isFenced, parseFencing } from "../../api/markers.ts";
import { planPodDeletion } from "./healing.ts";
import type { PolledInstance, SilentInstance } from "./observed.ts";
import { type Pass, recordEvent } from "./pass.ts";
import { postgresContainer } from "./pods.ts";
import { primaryState } from "./roles.ts";

/** A disk that comes back within this time gets its instance back where it is, in milliseconds. */
export const deadVolumeMs = 60_000;

/**
 * Removes pods whose instance says that its volume takes no writes and does not come back (safety protocol §2): only a new
 * pod has it mounted anew, here or on another node, and one that can't have it stays pending where everybody sees it. Never
 * the primary's, and nobody's while there is no primary that is well: what is on the volume may be all that is left.
 */
export function planDeadVolumes(pass: Pass, sorted: readonly PolledInstance[]): null {
  const state = primaryState(pass);
  if (state.kind !== "stable") return null;
  const primary = sorted.find((it) => it.name === state.primary);
  if (primary?.kind !== "answered" || !primary.ready) return null;
  const fencing = parseFencing(pass.cluster);
  for (const instance of sorted) {
    if (instance.kind !== "silent" || isFenced(fencing, instance.name)) continue;
    const { volumeFailure } = instance;
    if (!volumeFailure || volumeFailure.silentMs < deadVolumeMs) continue;
    const message =
      `Deleted pod ${instance.name}: ${describeVolumes(instance, volumeFailure.folders)} has taken no write for ` +
      `${Math.round(volumeFailure.silentMs / 1_000)} s; ${state.primary} is the primary. The pod starts again once the volume can be mounted`;
    planPodDeletion(pass, instance.pod, message);
    recordEvent(pass, "Warning", "DeadVolume", message);
  }
  return null;
}

/** The claims behind folders of the instance, with the folders for whoever looks into the container. */
function describeVolumes({ pod }: SilentInstance, folders: readonly string[]): string {
  const container = pod.spec?.containers.find((it) => it.name === postgresContainer);
  const named = folders.map((folder) => {
    const volume = container?.volumeMounts?.find((it) => it.mountPath === folder)?.name;
    const claim = pod.spec?.volumes?.find((it) => it.name === volume)?.persistentVolumeClaim?.claimName;
    return claim ? `${claim} (${folder})` : folder;
  });
  return `volume ${named.join(" and ")}`;
}
