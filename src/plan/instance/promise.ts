import type { LeaseRecord } from "./lease.ts";
import { isReleasedBy, type ReleaseNotice } from "./release-notice.ts";

/** What the holder of the primary Lease asks each voter while it can't renew (safety protocol §1.3). */
export interface PromiseRequest {
  /** Namespace and name of the cluster. */
  cluster: string;
  /** Name of the instance that is asked: an address may lead to another one by now. */
  voter: string;
  holder: string;
  /** UID of the holder's pod. */
  holderUID: string;
  transitions: number;
  /** How long the voter is to keep away from the Lease, in milliseconds: the record's lease duration. */
  durationMs: number;
  /** Ties the answer to this question. */
  nonce: string;
}

export type PromiseAnswer = Pick<PromiseRequest, "voter" | "holderUID" | "transitions" | "nonce"> &
  ({ granted: true } | { granted: false; reason: string });

/** A promise that was given. */
export interface Grant {
  holder: string;
  holderUID: string;
  transitions: number;
  /** End on the voter's own boot-time clock, in milliseconds. */
  until: number;
}

export interface VoterView {
  /** Namespace and name of the cluster. */
  cluster: string;
  me: string;
  /** The Lease as it was last read or written; `undefined` when this process never saw it. */
  record: LeaseRecord | undefined;
  /** A write of its own that would take the Lease is under way, or nobody knows what became of it. */
  claiming: boolean;
  /** Whether this process is the holder, or was and has not given the Lease back. */
  isHolder: boolean;
  /** The promise that binds at this moment. */
  grant: Grant | undefined;
}

/** Longest promise, in milliseconds; a longer one is a mistake. */
const longestMs = 3_600_000;

function refusal(view: VoterView, request: PromiseRequest): string | undefined {
  const { record } = view;
  if (request.cluster !== view.cluster || request.voter !== view.me) return `this is ${view.me} of ${view.cluster}`;
  if (!(request.durationMs > 0 && request.durationMs <= longestMs)) return "the duration is out of range";
  if (view.isHolder) return "this instance holds the lease itself";
  if (view.claiming) return "an acquisition of this instance's own is under way, or its outcome is not known";
  const { grant } = view;
  const isSame = grant?.transitions === request.transitions && grant.holderUID === request.holderUID;
  if (grant && !isSame && grant.transitions >= request.transitions) return `${grant.holder} was promised the same`;
  // An older record than the holder's own is no objection: the holder has written since.
  if (!record || record.transitions < request.transitions) return undefined;
  if (record.transitions > request.transitions) return "another instance was the holder since";
  if (record.holder === "") return "the lease was given back";
  const uid = record.voters?.holderUID;
  if (record.holder !== request.holder || (uid !== undefined && uid !== request.holderUID)) {
    return `the holder is ${record.holder}`;
  }
  return undefined;
}

/** Decides whether a voter promises to leave the Lease alone. */
export function planPromise(view: VoterView, request: PromiseRequest): PromiseAnswer {
  const { voter, holderUID, transitions, nonce } = request;
  const reason = refusal(view, request);
  const echo = { voter, holderUID, transitions, nonce };
  return reason === undefined ? { ...echo, granted: true } : { ...echo, granted: false, reason };
}

/** The promise that stands after one more was given at a moment; an earlier one that lasts longer is kept too. */
export function grantOf(earlier: Grant | undefined, request: PromiseRequest, receivedAt: number): Grant {
  const { holder, holderUID, transitions } = request;
  const until = receivedAt + request.durationMs;
  return { holder, holderUID, transitions, until: Math.max(until, earlier?.until ?? until) };
}

/** Whether an answer grants what was asked; an answer to another question grants nothing. */
export function isGranted(request: PromiseRequest, answer: unknown): boolean {
  if (typeof answer !== "object" || answer === null) return false;
  const given = answer as Partial<PromiseAnswer>;
  return (
    given.granted === true &&
    given.voter === request.voter &&
    given.nonce === request.nonce &&
    given.holderUID === request.holderUID &&
    given.transitions === request.transitions
  );
}

/**
 * Whether a promise still binds. The release of the very record that it was given for ends it early: the holder writes
 * that, or tells it, after its PostgreSQL is down, and has no right from then on but by a newer record (ADR 0009, 0012).
 */
export function binds(
  grant: Grant | undefined,
  record: LeaseRecord | undefined,
  now: number,
  notice?: ReleaseNotice,
): grant is Grant {
  if (!grant || now >= grant.until) return false;
  const isNoticed = notice?.transitions === grant.transitions && notice.holderUID === grant.holderUID;
  if (isNoticed && isReleasedBy(notice, record)) return false;
  const released =
    record?.holder === "" &&
    record.transitions === grant.transitions &&
    record.voters?.holderUID === grant.holderUID &&
    record.voters.voters.length > 0;
  return !released;
}

/** Reads a question from JSON; `null` when it is none. */
export function parsePromiseRequest(text: string): PromiseRequest | null {
  let value: Partial<PromiseRequest> | null;
  try {
    value = JSON.parse(text) as Partial<PromiseRequest> | null;
  } catch {
    return null;
  }
  if (typeof value !== "object" || value === null) return null;
  const { cluster, voter, holder, holderUID, transitions, durationMs, nonce } = value;
  const texts = [cluster, voter, holder, holderUID, nonce];
  if (texts.some((text) => typeof text !== "string") || ![transitions, durationMs].every(Number.isFinite)) return null;
  return { cluster, voter, holder, holderUID, transitions, durationMs, nonce } as PromiseRequest;
}
