import { annotations } from "../../api/labels.ts";
import { parseLeaseVoters } from "../../api/lease-voters.ts";
import { namedPrimary } from "../../api/named-primary.ts";
import { buildFailoverQuorum, planLease, wantsFailoverQuorum } from "../../build/lease.ts";
import { ownsObject } from "../../build/metadata.ts";
import { refTo } from "./actions.ts";
import type { Problem } from "./auxiliary.ts";
import { draftCluster, type Pass } from "./pass.ts";

/** Who may take the primary Lease as far as it says so; empty when it keeps no list. */
export function leaseVoters(pass: Pass): readonly string[] {
  return (pass.observed.lease && parseLeaseVoters(pass.observed.lease)?.voters) ?? [];
}

/** The instance that a person named, if the primary Lease is such that only a person can decide (safety protocol §1.4). */
export function choiceOfPerson(pass: Pass): string | undefined {
  const { lease } = pass.observed;
  if (!lease) return undefined;
  const history = {
    holder: lease.spec?.holderIdentity ?? "",
    transitions: lease.spec?.leaseTransitions ?? 0,
    voters: parseLeaseVoters(lease)?.voters,
  };
  return namedPrimary(draftCluster(pass), history);
}

/** Takes a person's word back once it has been followed, so that it decides nothing the next time. */
export function planWordRemoval(pass: Pass): null {
  const named = pass.cluster.metadata.annotations?.[annotations.namedPrimary];
  const isHolder = named !== undefined && pass.observed.lease?.spec?.holderIdentity === named;
  if (!isHolder || pass.status.currentPrimary !== named || choiceOfPerson(pass) !== undefined) return null;
  const patch = { metadata: { annotations: { [annotations.namedPrimary]: null } } };
  pass.actions.push({ kind: "patchCluster", patch, reason: `${named}, whom a person named, is the primary` });
  return null;
}

/** The Lease that says who may write: it only has to be there and to be ours, its content is the instances'. */
export function planPrimaryLease(pass: Pass): Problem[] {
  const plan = planLease(pass.cluster, pass.observed.lease, pass.observed.operator.context);
  switch (plan.kind) {
    case "keep":
      return [];
    case "create":
      pass.actions.push({
        kind: "create",
        object: { ...plan.lease },
        mustOwn: true,
        reason: "the primary lease does not exist",
      });
      return [];
    case "adopt":
      pass.actions.push({
        kind: "update",
        object: { ...plan.lease },
        reason: "the primary lease of an earlier cluster is taken over",
      });
      return [];
    case "conflict":
      return [{ event: "PrimaryLeaseConflict", message: plan.message }];
  }
}

/** The record that a failover asks for permission, present only when the cluster wants it. */
export function planQuorumObject(pass: Pass): void {
  const live = pass.observed.failoverQuorum;
  const isWanted = wantsFailoverQuorum(pass.cluster);
  if (isWanted && !live) {
    const object = { ...buildFailoverQuorum(pass.cluster, pass.observed.operator.context) };
    pass.actions.push({ kind: "create", object, mustOwn: true, reason: "the failover quorum is enabled" });
  } else if (!isWanted && live && ownsObject(pass.cluster, live)) {
    const reason = "the failover quorum is disabled";
    pass.actions.push({ kind: "delete", target: refTo(live), propagation: "Background", bestEffort: false, reason });
  }
}
