import { cnpgApiVersion, pendingPrimary } from "../../api/constants.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { formatMicroTime } from "../../api/micro-time.ts";
import { phases } from "../../api/phases.ts";
import { type PatchOptions, patchStatus } from "../../kube/patch-status.ts";
import { resources } from "../../kube/resources.ts";
import type { EventSink } from "../../ports/event-sink.ts";
import type { InstanceContext } from "../instance-context.ts";

/** Longest time for a claim: the right to make it is looked at before, and does not last. */
const claimLimitMs = 5_000;

type Condition = NonNullable<NonNullable<Cluster["status"]>["conditions"]>[number];

/** Writes of this instance to the Cluster's status; each touches its own fields only. */
export interface ClusterStatusWriter {
  /**
   * Tells that this instance is the primary, and with which token it was promoted; throws when it is no target any more or
   * `mayClaim` denies it at the write.
   */
  claimPrimary(mayClaim: (cluster: Cluster) => boolean, signal: AbortSignal, promotionToken?: string): Promise<void>;
  /** Gives the place of the target primary back, so that the operator chooses anew; nothing when it is somebody else's. */
  declineTarget(reason: string, signal: AbortSignal): Promise<void>;
  setPhase(phase: string, reason: string, signal?: AbortSignal): Promise<void>;
  /** Sets a condition, only when something in it changes. */
  setCondition(wanted: Omit<Condition, "lastTransitionTime">, signal?: AbortSignal): Promise<void>;
  /** Replaces the status by what the callback makes of it; the same object means no change. */
  update(
    change: (status: NonNullable<Cluster["status"]>) => NonNullable<Cluster["status"]>,
    signal?: AbortSignal,
  ): Promise<void>;
}

/** Replaces or adds a condition; gives the same list when nothing changes. */
export function withCondition(
  conditions: readonly Condition[],
  wanted: Omit<Condition, "lastTransitionTime">,
  now: number,
): readonly Condition[] {
  const known = conditions.find((condition) => condition.type === wanted.type);
  if (known && known.status === wanted.status && known.reason === wanted.reason && known.message === wanted.message) {
    return conditions;
  }
  const lastTransitionTime =
    known && known.status === wanted.status
      ? known.lastTransitionTime
      : new Date(now).toISOString().replace(/\.\d+Z$/, "Z");
  const entry = { ...wanted, lastTransitionTime };
  return known ? conditions.map((condition) => (condition === known ? entry : condition)) : [...conditions, entry];
}

export function createClusterStatusWriter(
  context: InstanceContext,
  /** Lets the local copy see a write at once. */
  observeWrite: (cluster: Cluster) => void,
  events: EventSink,
): ClusterStatusWriter {
  const { kube, clock, settings, logger } = context;
  const key = { namespace: settings.namespace, name: settings.clusterName };

  async function write(change: (current: Cluster) => Cluster | undefined, options: PatchOptions): Promise<Cluster> {
    const written = await patchStatus(kube, resources.clusters, key, change, options);
    observeWrite(written);
    return written;
  }

  return {
    async claimPrimary(mayClaim, signal, promotionToken) {
      await write(
        (current) => {
          const target = current.status?.targetPrimary ?? "";
          if (target !== settings.podName) {
            throw new Error(
              `${settings.podName} can't claim to be primary: status.targetPrimary is ${target || "unset"}`,
            );
          }
          if (!mayClaim(current)) {
            throw new Error(
              `${settings.podName} can't claim to be primary: it does not hold the primary lease right now`,
            );
          }
          const currentPrimaryTimestamp = formatMicroTime(clock.now());
          return {
            ...current,
            status: {
              ...current.status,
              currentPrimary: settings.podName,
              currentPrimaryTimestamp,
              ...(promotionToken === undefined ? {} : { lastPromotionToken: promotionToken }),
            },
          };
        },
        // The copy at hand saves a read in the middle of a switchover; the write fails if it is outdated.
        { current: context.state.cluster, signal: AbortSignal.any([signal, AbortSignal.timeout(claimLimitMs)]) },
      );
      logger.info("Set this instance as the current primary");
    },

    async declineTarget(reason, signal) {
      const phaseReason = `${settings.podName} is not promoted: ${reason}`;
      let isMine = false;
      const { metadata } = await write(
        (current) => {
          const { targetPrimary, currentPrimary } = current.status ?? {};
          isMine = targetPrimary === settings.podName && currentPrimary !== settings.podName;
          if (!isMine) return undefined;
          const targetPrimaryTimestamp = formatMicroTime(clock.now());
          return {
            ...current,
            status: { ...current.status, targetPrimary: pendingPrimary, targetPrimaryTimestamp, phaseReason },
          };
        },
        { signal: AbortSignal.any([signal, AbortSignal.timeout(claimLimitMs)]) },
      );
      if (!isMine) return;
      logger.warning("This instance is not promoted, the operator is to choose anew", { reason });
      // The operator's next attempt replaces the phase's reason, this stays.
      const target = { apiVersion: cnpgApiVersion, kind: "Cluster", ...key, uid: metadata.uid ?? "" };
      events.record(target, { type: "Warning", reason: "PromotionDeclined", message: phaseReason });
    },

    async setPhase(phase, reason, signal) {
      await write(
        (current) => {
          if (current.status?.phase === phase && current.status.phaseReason === reason) return undefined;
          const ready = phase === phases.healthy;
          const conditions = withCondition(
            current.status?.conditions ?? [],
            {
              type: "Ready",
              status: ready ? "True" : "False",
              reason: ready ? "ClusterIsReady" : "ClusterIsNotReady",
              message: ready ? "Cluster is Ready" : "Cluster Is Not Ready",
            },
            clock.now(),
          );
          return { ...current, status: { ...current.status, phase, phaseReason: reason, conditions: [...conditions] } };
        },
        signal ? { signal } : {},
      );
    },

    async update(change, signal) {
      await write(
        (current) => {
          const before = current.status ?? {};
          const status = change(before);
          return status === before ? undefined : { ...current, status };
        },
        signal ? { signal } : {},
      );
    },

    async setCondition(wanted, signal) {
      await write(
        (current) => {
          const before = current.status?.conditions ?? [];
          const conditions = withCondition(before, wanted, clock.now());
          if (conditions === before) return undefined;
          return { ...current, status: { ...current.status, conditions: [...conditions] } };
        },
        signal ? { signal } : {},
      );
    },
  };
}
