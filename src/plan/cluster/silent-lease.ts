import type { Lease } from "../../api/generated/kubernetes.ts";
import { parseLeaseVoters } from "../../api/lease-voters.ts";
import type { PolledInstance } from "./observed.ts";
import type { Pass } from "./pass.ts";

/** How long the primary Lease must have been the same before something is concluded from it, in milliseconds. */
export const silentLeaseMs = 5_000;

/** The instance that gave the Lease back by itself, where nobody has taken it since. */
export function leaseGivenBackBy(lease: Lease): string | undefined {
  return lease.spec?.holderIdentity ? undefined : parseLeaseVoters(lease)?.releasedBy;
}

/**
 * Why a primary that Kubernetes still counts as Ready is to be given up; `null` when that can't be concluded (safety
 * protocol §2). No proof of its death: its successor still waits until the Lease has run out. It only must not be a mere
 * fault between operator and pod, so everybody who could have heard from the primary is asked.
 */
export function concludePrimaryLost(pass: Pass, sorted: readonly PolledInstance[]): string | null {
  const { lease, leaseUnchangedMs } = pass.observed;
  const { currentPrimary } = pass.status;
  // A primary that other managers run may live without its Lease.
  if (!lease || !parseLeaseVoters(lease) || !currentPrimary) return null;
  // Given back by itself, as on a dead disk; a container that merely starts anew has taken it again by then.
  const isGivenBack = leaseGivenBackBy(lease) === currentPrimary;
  if (!isGivenBack && lease.spec?.holderIdentity !== currentPrimary) return null;
  if (leaseUnchangedMs === undefined || leaseUnchangedMs < silentLeaseMs) return null;
  const primary = sorted.find((it) => it.name === currentPrimary);
  if (primary?.kind !== "silent") return null;
  const witnesses = sorted.filter((it) => it.kind === "answered");
  if (witnesses.length === 0) return null;
  const hasHeard = witnesses.some(({ status }) => {
    const { grant, silentMs } = status.cnpgTs ?? {};
    const promised = grant !== undefined && grant.holder === currentPrimary && grant.leftMs > 0;
    // An instance looks at the Lease now and then: that it was changed lately may be its being given back.
    const sawRenewal = !isGivenBack && silentMs !== undefined && silentMs < silentLeaseMs;
    return status.isWalReceiverActive || promised || sawRenewal;
  });
  if (hasHeard) return null;
  const seconds = Math.round(leaseUnchangedMs / 1_000);
  const what = isGivenBack ? `gave its lease back ${seconds} s ago` : `has not renewed its lease for ${seconds} s`;
  return `${currentPrimary} does not answer, ${what}, and no instance hears from it`;
}
