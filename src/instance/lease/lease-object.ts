import type { Lease } from "../../api/generated/kubernetes.ts";
import { annotations } from "../../api/labels.ts";
import { formatLeaseVoters, type LeaseVoters, parseLeaseVoters } from "../../api/lease-voters.ts";
import type { LeaseRecord } from "../../plan/instance/lease.ts";

/** What a Lease says about its holder. */
export function readRecord(lease: Lease): LeaseRecord {
  return {
    holder: lease.spec?.holderIdentity ?? "",
    renewTime: lease.spec?.renewTime ?? "",
    transitions: lease.spec?.leaseTransitions ?? 0,
    durationSeconds: lease.spec?.leaseDurationSeconds ?? 0,
    voters: parseLeaseVoters(lease),
  };
}

function withVoters(lease: Lease, voters: LeaseVoters): Lease {
  const noted = { ...lease.metadata.annotations, [annotations.leaseVoters]: formatLeaseVoters(voters) };
  return { ...lease, metadata: { ...lease.metadata, annotations: noted } };
}

/** The Lease as its holder writes it to prove its right anew; `now` is the text of a time. */
export function renewedLease(
  lease: Lease,
  write: {
    holder: string;
    holderUID: string;
    voters: string[];
    transitions: number;
    durationMs: number;
    isClaim: boolean;
    now: string;
  },
): Lease {
  const { holder, holderUID, voters, transitions, durationMs, isClaim, now } = write;
  const spec = {
    ...lease.spec,
    holderIdentity: holder,
    leaseDurationSeconds: Math.round(durationMs / 1000),
    acquireTime: isClaim || !lease.spec?.acquireTime ? now : lease.spec.acquireTime,
    renewTime: now,
    leaseTransitions: transitions,
  };
  return withVoters({ ...lease, spec }, { voters, holderUID });
}

/** The Lease as its holder gives it back; `now` is the text of a time. */
export function releasedLease(
  lease: Lease,
  write: {
    holder: string;
    holderUID: string;
    voters: string[];
    durationSeconds: number;
    walEnd: string | undefined;
    now: string;
  },
): Lease {
  const { holder, holderUID, voters, durationSeconds, walEnd, now } = write;
  const spec = { ...lease.spec, leaseDurationSeconds: durationSeconds, holderIdentity: "", renewTime: now };
  return withVoters({ ...lease, spec }, { voters, holderUID, releasedBy: holder, ...(walEnd ? { walEnd } : {}) });
}
