import type { LeaseSpec } from "../api/generated/kubernetes.ts";

export interface LeaseTimings {
  leaseDurationMs: number;
  renewDeadlineMs: number;
  retryPeriodMs: number;
}

/** What a candidate has seen of the record, on its own clock: the holder's clock is never trusted. */
export interface LeaseObservation {
  /** Holder, renewal time and transitions as one text. */
  record: string;
  /** Monotonic time at which the candidate first saw this record. */
  sinceMs: number;
}

export type LeaseDecision =
  | { action: "acquire"; spec: LeaseSpec; reason: string }
  | { action: "renew"; spec: LeaseSpec; reason: string }
  | { action: "wait"; reason: string };

export interface LeaseInput {
  /** `undefined` when the Lease does not exist. */
  spec: LeaseSpec | undefined;
  identity: string;
  observation: LeaseObservation;
  /** Monotonic. */
  nowMs: number;
  /** Wall clock, for the record only. */
  wallMs: number;
  timings: LeaseTimings;
}

/** Text that changes whenever the holder renews or changes. */
export function formatLeaseRecord(spec: LeaseSpec | undefined): string {
  if (!spec) return "absent";
  return JSON.stringify([spec.holderIdentity ?? "", spec.renewTime ?? "", spec.leaseTransitions ?? 0]);
}

/** Updates what a candidate has seen; the time is kept while the record stays the same. */
export function observeLease(
  previous: LeaseObservation | undefined,
  spec: LeaseSpec | undefined,
  nowMs: number,
): LeaseObservation {
  const record = formatLeaseRecord(spec);
  return previous?.record === record ? previous : { record, sinceMs: nowMs };
}

/** Whether to take, keep or leave the leadership. */
export function planLease(input: LeaseInput): LeaseDecision {
  const { spec, identity, observation, nowMs, timings } = input;
  const holder = spec?.holderIdentity ?? "";
  if (holder === identity) return { action: "renew", spec: renewed(input), reason: "we hold it" };
  if (!spec) return { action: "acquire", spec: acquired(input), reason: "it does not exist" };
  if (holder === "") return { action: "acquire", spec: acquired(input), reason: "it was released" };
  const unchangedMs = nowMs - observation.sinceMs;
  // The holder may have been promised a longer time than we would take for ourselves.
  const durationMs = Math.max(timings.leaseDurationMs, (spec.leaseDurationSeconds ?? 0) * 1000);
  if (unchangedMs >= durationMs) {
    return {
      action: "acquire",
      spec: acquired(input),
      reason: `${holder} has not renewed it for ${Math.round(unchangedMs)} ms`,
    };
  }
  return { action: "wait", reason: `${holder} holds it` };
}

/** The record that gives leadership back, so that a successor need not wait. */
export function releasedLease(spec: LeaseSpec, wallMs: number): LeaseSpec {
  const now = formatMicroTime(wallMs);
  return { ...spec, holderIdentity: "", leaseDurationSeconds: 1, acquireTime: now, renewTime: now };
}

/** Kubernetes' time with microseconds. */
export function formatMicroTime(wallMs: number): string {
  return new Date(wallMs).toISOString().replace("Z", "000Z");
}

function renewed({ spec, wallMs, timings }: LeaseInput): LeaseSpec {
  return { ...spec, leaseDurationSeconds: timings.leaseDurationMs / 1000, renewTime: formatMicroTime(wallMs) };
}

function acquired({ spec, identity, wallMs, timings }: LeaseInput): LeaseSpec {
  const now = formatMicroTime(wallMs);
  return {
    ...spec,
    holderIdentity: identity,
    leaseDurationSeconds: timings.leaseDurationMs / 1000,
    acquireTime: now,
    renewTime: now,
    leaseTransitions: spec ? (spec.leaseTransitions ?? 0) + 1 : 0,
  };
}
