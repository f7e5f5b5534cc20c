import { labels } from "../../api/labels.ts";
import { parseTargetPrimary } from "../../api/pg-status.ts";
import { refTo } from "./actions.ts";
import { type Pass, setTargetPrimary, type Wait } from "./pass.ts";
import { isActivePod, roleOf } from "./pods.ts";
import { choiceOfPerson } from "./primary-lease.ts";

/** What the two primary fields say together. */
export type PrimaryState =
  /** No instance has ever been primary. */
  | { kind: "none" }
  | { kind: "stable"; primary: string }
  /** A failover has begun and no successor is chosen yet. */
  | { kind: "electing"; old: string }
  /** The successor is at work. */
  | { kind: "promoting"; old: string; successor: string }
  /** The successor has no running pod any more. */
  | { kind: "successorLost"; old: string; successor: string };

/** Reads `status.currentPrimary` and `status.targetPrimary` against the pods that exist. */
export function primaryState(pass: Pass): PrimaryState {
  const current = pass.status.currentPrimary;
  if (!current) return { kind: "none" };
  const target = parseTargetPrimary(pass.status.targetPrimary);
  if (target.kind === "none") return { kind: "stable", primary: current };
  if (target.kind === "pending") return { kind: "electing", old: current };
  if (target.name === current) return { kind: "stable", primary: current };
  const pod = pass.observed.pods.find((it) => it.metadata.name === target.name);
  const kind = pod && isActivePod(pod) ? "promoting" : "successorLost";
  return { kind, old: current, successor: target.name };
}

/** Takes the old primary out of the read-write Service; the pod may be gone already, so a failure changes nothing. */
export function planUnhealthyLabel(pass: Pass, primary: string): void {
  const pod = pass.observed.pods.find((it) => it.metadata.name === primary);
  if (!pod || roleOf(pod) === "unhealthy") return;
  const patch = { metadata: { labels: { [labels.legacyRole]: "unhealthy", [labels.instanceRole]: "unhealthy" } } };
  pass.actions.push({
    kind: "patch",
    target: refTo(pod),
    patch,
    bestEffort: true,
    reason: `${primary} is no longer the primary to be`,
  });
}

/** A successor gets this long while no instance at all is ready; then the old primary is asked back, in milliseconds. */
const stuckPromotionMs = 60_000;

/**
 * Whether a change of primary got stuck: nobody is ready for a while, and the old primary runs and waits for its turn. It is
 * left to the primary lease that only one of them writes, whichever way the change ends.
 */
function isPromotionStuck(pass: Pass, old: string): boolean {
  if ((pass.status.readyInstances ?? 0) > 0) return false;
  const oldPod = pass.observed.pods.find((it) => it.metadata.name === old);
  const since = Date.parse(pass.status.targetPrimaryTimestamp ?? "");
  return oldPod !== undefined && isActivePod(oldPod) && pass.now.getTime() - since >= stuckPromotionMs;
}

function isRunning(pass: Pass, instance: string): boolean {
  return pass.observed.pods.some((it) => it.metadata.name === instance && isActivePod(it));
}

/** While the successor promotes itself, nothing else is done. */
export function waitForPromotion(pass: Pass, state: PrimaryState): Wait | null {
  if (state.kind !== "promoting") return null;
  if (isPromotionStuck(pass, state.old)) {
    setTargetPrimary(pass, state.old);
    return { requeueAfterMs: 1_000, because: `${state.successor} did not take over and no instance is ready` };
  }
  const named = choiceOfPerson(pass);
  if (named !== undefined && named !== state.successor && isRunning(pass, named)) {
    setTargetPrimary(pass, named);
    return { requeueAfterMs: 1_000, because: `a person named ${named} instead of ${state.successor}` };
  }
  planUnhealthyLabel(pass, state.old);
  return { requeueAfterMs: 1_000, because: `${state.successor} is taking over from ${state.old}` };
}
