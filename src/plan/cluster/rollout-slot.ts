import type { OperatorFacts, RolloutSlot } from "./observed.ts";

/** Whether the operator's one rollout slot may be taken now: 0, or the milliseconds that are left to wait. */
export function rolloutDelayMs(
  slot: Pick<RolloutSlot, "cluster" | "atMs"> | undefined,
  cluster: string,
  facts: Pick<OperatorFacts, "instancesRolloutDelayMs" | "clustersRolloutDelayMs">,
  now: Date,
): number {
  if (!slot) return 0;
  const pause = slot.cluster === cluster ? facts.instancesRolloutDelayMs : facts.clustersRolloutDelayMs;
  return Math.max(0, slot.atMs + pause - now.getTime());
}
