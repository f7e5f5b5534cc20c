import type { Cluster } from "../../api/generated/cluster.ts";
import { planStandbySlots, slotCopyPauseMs } from "../../plan/instance/slots.ts";
import { compileGoPattern } from "../../postgres/go-pattern.ts";
import { defaultSlotPrefix, slotNameOf } from "../../postgres/slots.ts";
import { usesHaSlots } from "../configuration-files.ts";
import type { InstanceContext } from "../instance-context.ts";
import { mightBeUnavailable } from "../instance-state.ts";
import { LocalSql } from "../local-sql.ts";
import type { Postmaster } from "../postmaster.ts";
import { dropLeftSlots } from "./left-slots.ts";
import { applySlotActions, physicalSlots, readSlot } from "./slots.ts";
import { querySource } from "./source-server.ts";

/** First round after the start of a standby. */
const firstRoundMs = 5_000;

/** Compiles the user's patterns; one that is not a regular expression excludes nothing and is told. */
export function compileExclusion(patterns: readonly string[]): {
  isExcluded: (name: string) => boolean;
  broken: string[];
} {
  const broken: string[] = [];
  const expressions = patterns.flatMap((pattern) => {
    const compiled = compileGoPattern(pattern);
    if (!compiled) broken.push(pattern);
    return compiled ? [compiled] : [];
  });
  return { isExcluded: (name) => expressions.some((expression) => expression.test(name)), broken };
}

/** Copies the primary's replication slots to a standby, so that they are there after a promotion. */
export class SlotReplicator {
  readonly #context: InstanceContext;
  readonly #postmaster: Postmaster;
  readonly #sql: LocalSql;

  constructor(context: InstanceContext, postmaster: Postmaster) {
    this.#context = context;
    this.#postmaster = postmaster;
    this.#sql = new LocalSql(context, { queryTimeoutMs: 30_000 });
  }

  async run(signal: AbortSignal): Promise<void> {
    let pauseMs = firstRoundMs;
    while (!signal.aborted) {
      await this.#context.clock.sleep(pauseMs, signal).catch(() => undefined);
      if (signal.aborted) break;
      const cluster = this.#context.state.cluster;
      pauseMs = slotCopyPauseMs(cluster?.spec.replicationSlots?.updateInterval);
      if (!cluster || !(await this.#isDue(cluster))) continue;
      try {
        await this.#round(cluster, signal);
      } catch (error) {
        if (!signal.aborted) this.#context.logger.warning("Could not copy the primary's replication slots", { error });
      }
    }
    await this.#sql.close();
  }

  async #isDue(cluster: Cluster): Promise<boolean> {
    const { state, settings, data } = this.#context;
    if (!cluster.spec.replicationSlots?.highAvailability || mightBeUnavailable(state) || state.stopping) return false;
    if (this.#postmaster.pid === undefined || !(await this.#postmaster.isAccepting())) return false;
    const { currentPrimary, targetPrimary } = cluster.status ?? {};
    if (currentPrimary === settings.podName || targetPrimary === settings.podName) return false;
    return (await data.role()) === "standby";
  }

  async #round(cluster: Cluster, signal: AbortSignal): Promise<void> {
    const { settings, logger } = this.#context;
    const slots = cluster.spec.replicationSlots;
    const prefix = slots?.highAvailability?.slotPrefix || defaultSlotPrefix;
    const { isExcluded, broken } = compileExclusion(slots?.synchronizeReplicas?.excludePatterns ?? []);
    if (broken.length > 0) logger.warning("Some excludePatterns are not regular expressions", { patterns: broken });
    // Before the primary is asked, which may be away.
    await dropLeftSlots(this.#sql, { isExcluded, logger });
    const source = { host: settings.primaryHost, port: settings.primaryPort, signal };
    const primary = (await querySource(this.#context, source, physicalSlots)).map(readSlot);
    const local = (await this.#sql.query(physicalSlots)).map(readSlot);
    const actions = planStandbySlots({
      local,
      primary,
      mySlot: slotNameOf(settings.podName, prefix),
      prefix,
      enabled: usesHaSlots(cluster),
      synchronizeUserSlots: slots?.synchronizeReplicas?.enabled ?? true,
      isExcluded,
    });
    await applySlotActions(this.#context, this.#sql, actions);
  }
}
