import { outdatedWish, planLease, planVoters } from "../../src/plan/instance/lease.ts";
import { binds, isGranted, planPromise } from "../../src/plan/instance/promise.ts";
import { planPromotion } from "../../src/plan/instance/promotion.ts";
import { isReleasedBy } from "../../src/plan/instance/release-notice.ts";
import {
  adoptedRight,
  compileRightTimings,
  deadlineOfRight,
  rightAfterRound,
  rightAfterWrite,
  rightWhileWriting,
  stateOfRight,
  type WriteRight,
  wantsRound,
} from "../../src/plan/instance/right-to-write.ts";
import { planRole, planStart } from "../../src/plan/instance/role.ts";

/** The plans that the simulated instances follow: the real ones, or real ones with one guard less. */
export const realRules = {
  adoptedRight: (view: Parameters<typeof adoptedRight>[0]): WriteRight | undefined => adoptedRight(view),
  planLease,
  planVoters,
  outdatedWish,
  planPromise,
  binds,
  isReleasedBy,
  isGranted,
  compileRightTimings,
  deadlineOfRight,
  rightAfterRound,
  rightAfterWrite,
  rightWhileWriting,
  stateOfRight,
  wantsRound,
  planRole,
  planStart,
  planPromotion,
  /** PostgreSQL is stopped, and the pod killed, when the right ends. */
  enforces: true,
  /** Clocks go on while a machine stands still. */
  countsSleep: true,
};

export type Rules = typeof realRules;

/** Plans with one guard less; each must be caught. */
export const brokenRules: Record<string, Partial<Rules>> = {
  "nobody stops a primary whose right ends": { enforces: false },
  "a candidate waits for the renew deadline only": {
    planLease: (view) => planLease({ ...view, unchangedMs: view.unchangedMs * 2.5 }),
  },
  "a voter does not keep its promise": { planLease: (view) => planLease({ ...view, promisedMs: 0 }) },
  "a majority of promises is enough": {
    rightAfterRound: (right, round, view) => {
      const others = right ? [...new Set([...right.voters, ...right.maybeVoters])].filter((it) => it !== view.me) : [];
      const isMajority = round.grantedBy.length + 1 > (others.length + 1) / 2;
      return rightAfterRound(right, isMajority ? { ...round, grantedBy: others } : round, view);
    },
  },
  "those whom a write of unknown outcome lists are not asked": {
    rightWhileWriting: (right, write) => {
      const during = rightWhileWriting(right, write);
      return during && right && { ...during, maybeVoters: right.maybeVoters };
    },
  },
  "a new runtime beside a primary without voters has no right that a write of its own could end": {
    adoptedRight: (view) => (view.deadlineMs === undefined ? undefined : adoptedRight(view)),
  },
  "a notice of release counts for whatever its holder writes afterwards": {
    isReleasedBy: (notice, record) =>
      notice !== undefined && record?.holder === notice.holder && record.voters?.holderUID === notice.holderUID,
    binds: (grant, record, now, notice) =>
      binds(grant, record, now, notice && record && { ...notice, renewTimes: [record.renewTime] }),
  },
  "an instance that is no voter takes the lease": {
    planLease: (view) =>
      planLease({
        ...view,
        record: {
          ...view.record,
          voters: view.record.voters && {
            ...view.record.voters,
            voters: [...view.record.voters.voters, view.me],
          },
        },
      }),
  },
  "a successor promotes without asking the others": {
    planPromotion: () => ({ kind: "promote", reason: "" }),
  },
  "a successor has everything of whoever was stopped in order": {
    planPromotion: (view) => planPromotion({ ...view, formerEnd: view.formerEnd && 0n }),
  },
  "a successor takes silence for less": {
    planPromotion: (view) => planPromotion({ ...view, quorum: "notAsked" }),
  },
  "the time for which a machine stood still does not count": { countsSleep: false },
  "the lease is taken for what an old copy of the Cluster says": { outdatedWish: () => undefined },
  "a primary starts without the lease": { planStart: () => ({ kind: "start" }) },
};
