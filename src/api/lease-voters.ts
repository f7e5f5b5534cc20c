import { annotations } from "./labels.ts";

/** Content of the voters annotation on the primary Lease: who may acquire it next, and which pod holds it. */
export interface LeaseVoters {
  /** Instance names whose grants count, sorted. */
  voters: string[];
  /** UID of the holder's pod, so that a recreated pod of the same name is another holder. */
  holderUID: string;
  /** Name of the instance that gave the Lease back; absent while somebody holds it. */
  releasedBy?: string;
  /** Where the WAL of a primary ends that was stopped in order before it gave the Lease back: its last checkpoint. */
  walEnd?: string;
}

/** Reads the annotation; `undefined` when it is absent or unreadable (then the Lease alone decides). */
export function parseLeaseVoters(object: {
  metadata: { annotations?: Record<string, string> };
}): LeaseVoters | undefined {
  const text = object.metadata.annotations?.[annotations.leaseVoters];
  if (!text) return undefined;
  try {
    const value = JSON.parse(text) as Partial<LeaseVoters>;
    if (!Array.isArray(value.voters) || typeof value.holderUID !== "string") return undefined;
    const { holderUID, releasedBy, walEnd } = value;
    const voters = value.voters.filter((name) => typeof name === "string");
    return {
      voters,
      holderUID,
      ...(typeof releasedBy === "string" ? { releasedBy } : {}),
      ...(typeof walEnd === "string" ? { walEnd } : {}),
    };
  } catch {
    return undefined;
  }
}

/** Writes the annotation's text, voters sorted and unique so that equal sets give equal text. */
export function formatLeaseVoters(value: LeaseVoters): string {
  const { holderUID, releasedBy, walEnd } = value;
  return JSON.stringify({ voters: [...new Set(value.voters)].sort(), holderUID, releasedBy, walEnd });
}
