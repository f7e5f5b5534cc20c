import type { LeaseTimings } from "./lease.ts";
import type { RightGround } from "./right-to-write.ts";

/**
 * What a runtime has the launcher keep for the next one, which may come up while nobody can read the Lease: whom to ask for
 * promises, for how long, and where they are.
 */
export interface RightNote {
  ground: RightGround;
  /** As the right was made with; the Cluster may ask for others by now. */
  timings: LeaseTimings;
  /** Host and port by the name of the voter. */
  peers: Readonly<Record<string, { host: string; port: number }>>;
}

export function formatRightNote({ ground, timings, peers }: RightNote): string {
  const { transitions, voters, maybeVoters } = ground;
  return JSON.stringify({ ground: { transitions, voters, maybeVoters }, timings, peers });
}

function isNames(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((it) => typeof it === "string");
}

function isTimings(value: Partial<LeaseTimings> | undefined): value is LeaseTimings {
  const times = [value?.leaseDurationMs, value?.renewDeadlineMs, value?.retryPeriodMs, value?.releasedDurationSeconds];
  return times.every((it) => typeof it === "number" && it > 0);
}

/** Reads a note; `undefined` when it is none or not whole, and then nobody is asked. */
export function parseRightNote(text: string): RightNote | undefined {
  let value: Partial<RightNote> | null;
  try {
    value = JSON.parse(text) as Partial<RightNote> | null;
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null) return undefined;
  const { ground, timings, peers } = value;
  if (!isTimings(timings) || typeof peers !== "object" || peers === null) return undefined;
  if (typeof ground?.transitions !== "number" || !isNames(ground.voters) || !isNames(ground.maybeVoters)) {
    return undefined;
  }
  return { ground, timings, peers };
}
