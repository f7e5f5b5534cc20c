import { annotations } from "./labels.ts";

/** What a Cluster remembers of its last rollout step, so that the pause after it outlives the operator. */
export interface RolloutNote {
  instance: string;
  /** Of the pod that was replaced; empty when none was. */
  podUid: string;
  /** Milliseconds since the epoch. */
  atMs: number;
}

export function formatRolloutNote({ instance, podUid, atMs }: RolloutNote): string {
  return JSON.stringify({ instance, podUid, at: new Date(atMs).toISOString() });
}

/** The one place that interprets the note; `undefined` when there is none or somebody else wrote it. */
export function parseRolloutNote(object: {
  metadata: { annotations?: Record<string, string> };
}): RolloutNote | undefined {
  const text = object.metadata.annotations?.[annotations.lastRollout];
  if (!text) return undefined;
  try {
    const { instance, podUid, at } = JSON.parse(text) as Record<string, unknown>;
    const atMs = typeof at === "string" ? Date.parse(at) : Number.NaN;
    if (typeof instance !== "string" || typeof podUid !== "string" || Number.isNaN(atMs)) return undefined;
    return { instance, podUid, atMs };
  } catch {
    return undefined;
  }
}
