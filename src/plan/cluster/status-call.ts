import type { Lease } from "../../api/generated/kubernetes.ts";
import { leaseGivenBackBy } from "./silent-lease.ts";

/** How long an instance may take to tell its state, in milliseconds; the pass waits for the slowest. */
const limitMs = 5_000;
/** The same for one that gave the primary Lease back by itself: nobody may write, and its successor waits for this call. */
const limitWithoutLeaseMs = 1_000;

/** Bound of the status call to an instance. */
export function planStatusLimit(instance: string, lease: Lease | undefined): number {
  return lease && leaseGivenBackBy(lease) === instance ? limitWithoutLeaseMs : limitMs;
}
