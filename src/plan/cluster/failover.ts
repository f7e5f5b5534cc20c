import { isReplicaCluster } from "../../api/cluster-facts.ts";
import { pendingPrimary } from "../../api/constants.ts";
import { annotations } from "../../api/labels.ts";
import { isFenced, parseFencing } from "../../api/markers.ts";
import { phases } from "../../api/phases.ts";
import { planDrain } from "./drain.ts";
import { ineligibility, isReceiving } from "./election.ts";
import { checkFailoverQuorum } from "./failover-quorum.ts";
import type { AnsweredInstance, PolledInstance } from "./observed.ts";
import { flushStatus, lookAgain, type Pass, recordEvent, setPhase, setTargetPrimary, type Wait } from "./pass.ts";
import { isActivePod, isAlivePod, startProblem } from "./pods.ts";
import { choiceOfPerson, leaseVoters } from "./primary-lease.ts";
import { type PrimaryState, planUnhealthyLabel, primaryState } from "./roles.ts";
import { formatMicroTime } from "./timestamps.ts";

/** How often the instances are asked again while a failover waits for the last WAL receiver, in milliseconds. */
const receiverPollMs = 200;
/** Failovers are put off this long while instance managers are being replaced, in milliseconds. */
const onlineUpgradeDelayMs = 30_000;

/**
 * Decides who should be primary (reference: cluster controller §6.2). `sorted` is the election order. `pending` stays
 * written until a successor is chosen or the old primary turns out to be well, so events are told once.
 */
export function planFailover(pass: Pass, state: PrimaryState, sorted: readonly PolledInstance[]): Wait | null {
  if (state.kind === "none" || state.kind === "promoting") return null;
  const current = state.kind === "stable" ? state.primary : state.old;
  const unsettled = state.kind === "stable" ? null : state;
  if (isHeldByUser(pass, current, sorted)) {
    return unsettled ? returnToCurrent(pass, current, "the primary is fenced or may be unavailable") : null;
  }
  if (isRestartingInPlace(pass, current)) return null;
  const [first] = sorted;
  if (!first) return null;
  if (!unsettled) {
    const drain = planDrain(pass, sorted, current);
    if (drain) return drain.wait;
  }
  if (first.kind === "silent") {
    return unsettled ? { requeueAfterMs: 1_000, because: "no instance answers, so no successor can be chosen" } : null;
  }
  if (isWell(pass, first, current, sorted)) {
    clearFailingSince(pass);
    return unsettled ? returnToCurrent(pass, current, `${current} is primary and answers`) : null;
  }
  return failOver(pass, current, unsettled, sorted);
}

/** Takes a change of primary back that nobody can finish, before anything else is concluded from it. */
export function planTargetRepair(pass: Pass): null {
  const state = primaryState(pass);
  if (state.kind !== "electing" && state.kind !== "successorLost") return null;
  if ((pass.status.readyInstances ?? 0) === 0) return returnToCurrent(pass, state.old, "no instance is ready");
  if (state.kind === "successorLost" && hasRunningPod(pass, state.old)) {
    return returnToCurrent(pass, state.old, `${state.successor} has no running pod and ${state.old} has`);
  }
  return null;
}

function returnToCurrent(pass: Pass, current: string, because: string): null {
  setTargetPrimary(pass, current);
  flushStatus(pass, `the primary stays ${current}: ${because}`);
  return null;
}

function hasRunningPod(pass: Pass, instance: string): boolean {
  return pass.observed.pods.some((it) => it.metadata.name === instance && isActivePod(it));
}

function isHeldByUser(pass: Pass, current: string, sorted: readonly PolledInstance[]): boolean {
  if (isFenced(parseFencing(pass.cluster), current)) return true;
  const primary = sorted.find((it) => it.name === current);
  return primary?.kind === "answered" && primary.status.mightBeUnavailable;
}

/** The operator deleted the primary's pod itself and waits for it, unless the new pod turns out to be unable to start. */
function isRestartingInPlace(pass: Pass, current: string): boolean {
  if (pass.status.phase !== phases.inPlaceDeletePrimaryRestart) return false;
  if (pass.status.readyInstances === pass.cluster.spec.instances) {
    setPhase(pass, phases.healthy);
    return true;
  }
  const pod = pass.observed.pods.find((it) => it.metadata.name === current);
  if (!pod) return true;
  const isCrashing = pod.status?.phase === "Running" && !isAlivePod(pod) && !pod.metadata.deletionTimestamp;
  return !startProblem(pod) && !isCrashing;
}

function isWell(pass: Pass, first: AnsweredInstance, current: string, sorted: readonly PolledInstance[]): boolean {
  if (isReplicaCluster(pass.cluster)) {
    // A pod that is there is not enough: one that is neither ready nor answers follows nothing.
    const designated = sorted.find((it) => it.name === pass.status.targetPrimary);
    return designated !== undefined && (designated.kind === "answered" || designated.ready);
  }
  if (first.name === current) return first.status.isPrimary || pass.status.targetPrimary === current;
  return false;
}

function failOver(
  pass: Pass,
  current: string,
  unsettled: Exclude<PrimaryState, { kind: "none" | "stable" | "promoting" }> | null,
  sorted: readonly PolledInstance[],
): Wait | null {
  const candidate = chooseSuccessor(pass, current, sorted);
  if (!candidate) return unsettled ? returnToCurrent(pass, current, "no instance may take over") : null;
  const denied = candidate.name === wordOnFailover(pass) ? null : quorumDenial(pass, current, sorted);
  // What was seen when the failover began may be gone by now.
  if (unsettled && denied !== null) return returnToCurrent(pass, current, denied);
  if (!unsettled && mustHoldBack(pass, current, denied)) return null;
  const isReplica = isReplicaCluster(pass.cluster);
  if (!unsettled && !isReplica) beginFailover(pass, current);
  const receiving = sorted.find((it) => it.kind === "answered" && it.name !== current && isReceiving(it.status));
  if (receiving) {
    return { requeueAfterMs: receiverPollMs, because: `${receiving.name} still receives WAL from ${current}` };
  }
  nameSuccessor(pass, current, candidate.name, unsettled, isReplica);
  return { requeueAfterMs: 1_000, because: `${candidate.name} is to take over from ${current}` };
}

function chooseSuccessor(pass: Pass, current: string, sorted: readonly PolledInstance[]): AnsweredInstance | undefined {
  const eligible = sorted.filter((it): it is AnsweredInstance => mayTakeOver(pass, current, it));
  return eligible.find((it) => it.name === wordOnFailover(pass)) ?? eligible[0];
}

/**
 * Whom a person named where a failover has begun and nobody was promoted so far: the successor may have given its place back
 * because others that it can't reach may have more. Before that nobody is asked, and an old word must decide nothing.
 */
function wordOnFailover(pass: Pass): string | undefined {
  return primaryState(pass).kind === "electing"
    ? pass.cluster.metadata.annotations?.[annotations.namedPrimary]
    : undefined;
}

function mayTakeOver(pass: Pass, current: string, it: PolledInstance): it is AnsweredInstance {
  if (it.kind !== "answered" || it.name === current) return false;
  const fenced = isFenced(parseFencing(pass.cluster), it.name);
  const named = choiceOfPerson(pass);
  if (named !== undefined && named !== it.name) return false;
  // Whom a person names takes the Lease by that word.
  return ineligibility(it, fenced, pass.status.timelineID, named ? [] : leaseVoters(pass)) === null;
}

/** Why the failover quorum does not let a failover happen; `null` when it does, or is not asked for. */
function quorumDenial(pass: Pass, current: string, sorted: readonly PolledInstance[]): string | null {
  if (!pass.cluster.spec.postgresql?.synchronous?.failoverQuorum || isReplicaCluster(pass.cluster)) return null;
  // A person who names the primary has decided what may be lost.
  if (choiceOfPerson(pass) !== undefined) return null;
  return checkFailoverQuorum({
    quorum: pass.observed.failoverQuorum,
    primary: current,
    instances: sorted,
    isEligible: (it) => mayTakeOver(pass, current, it),
  });
}

/**
 * Whether a failover that is due must not begin yet: its delay runs, or the quorum denies it. The pass goes on, and where
 * the quorum denies it gives the failing primary its pod back; the start of the failure stays written down.
 */
function mustHoldBack(pass: Pass, current: string, denied: string | null): boolean {
  const configured = (pass.cluster.spec.failoverDelay ?? 0) * 1_000;
  const delayMs = pass.status.phase === phases.onlineUpgrading ? onlineUpgradeDelayMs : configured;
  if (delayMs > 0) {
    const since = pass.status.currentPrimaryFailingSinceTimestamp ?? formatMicroTime(pass.now);
    pass.status = { ...pass.status, currentPrimaryFailingSinceTimestamp: since };
    flushStatus(pass, `${current} is failing`);
    const leftMs = delayMs - (pass.now.getTime() - Date.parse(since));
    if (leftMs > 0) {
      lookAgain(pass, Math.min(1_000, leftMs));
      pass.failoverDelayed = true;
      return true;
    }
  }
  if (denied === null) return false;
  const message =
    `No failover from ${current}: ${denied}. It begins once enough of them answer and are ready; to go on with what ` +
    "the others have and lose what they may lack, set spec.postgresql.synchronous.failoverQuorum to false";
  recordEvent(pass, "Warning", "FailoverQuorumDenied", message);
  lookAgain(pass, 1_000);
  return true;
}

function beginFailover(pass: Pass, current: string): void {
  const message = `Current primary isn't healthy, initiating a failover from ${current}`;
  recordEvent(pass, "Normal", "FailingOver", message);
  setPhase(pass, phases.failingOver, `Initiating a failover from ${current}`);
  setTargetPrimary(pass, pendingPrimary);
  flushStatus(pass, message);
  planUnhealthyLabel(pass, current);
}

function nameSuccessor(
  pass: Pass,
  current: string,
  successor: string,
  unsettled: Exclude<PrimaryState, { kind: "none" | "stable" | "promoting" }> | null,
  isReplica: boolean,
): void {
  let message: string;
  if (unsettled?.kind === "successorLost") {
    message = `Target primary isn't healthy, switching target from ${unsettled.successor} to ${successor}`;
    recordEvent(pass, "Normal", "FailingOver", message);
    setPhase(pass, phases.switchover, `Switching over to ${successor}`);
  } else if (isReplica) {
    message = `Current target primary isn't healthy, failing over from ${current} to ${successor}`;
    recordEvent(pass, "Normal", "FailingOver", message);
    setPhase(pass, phases.failingOver, `Failing over to ${successor}`);
  } else {
    message = `Failing over from ${current} to ${successor}`;
    recordEvent(pass, "Normal", "FailoverTarget", message);
    setPhase(pass, phases.failingOver, message);
  }
  setTargetPrimary(pass, successor);
  flushStatus(pass, message);
}

function clearFailingSince(pass: Pass): void {
  if (pass.status.currentPrimaryFailingSinceTimestamp === undefined) return;
  const { currentPrimaryFailingSinceTimestamp: _, ...rest } = pass.status;
  pass.status = rest;
}
