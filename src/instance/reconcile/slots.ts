import type { Cluster } from "../../api/generated/cluster.ts";
import { planPrimarySlots, type Slot, type SlotAction } from "../../plan/instance/slots.ts";
import { defaultSlotPrefix, slotNameOf } from "../../postgres/slots.ts";
import { usesHaSlots } from "../configuration-files.ts";
import type { InstanceContext } from "../instance-context.ts";

/** What runs SQL for the slot steps: a session of ours or a fake. */
export interface SlotSql {
  query(text: string, values?: readonly unknown[]): Promise<Record<string, unknown>[]>;
}

export const physicalSlots = `
  SELECT slot_name, active, restart_lsn::text AS restart_lsn,
         xmin IS NOT NULL OR catalog_xmin IS NOT NULL AS holds_xmin
    FROM pg_replication_slots WHERE slot_type = 'physical' AND NOT temporary ORDER BY slot_name`;

export function readSlot(row: Record<string, unknown>): Slot {
  return {
    name: String(row["slot_name"]),
    active: row["active"] === true,
    restartLsn: typeof row["restart_lsn"] === "string" ? row["restart_lsn"] : null,
    holdsXmin: row["holds_xmin"] === true,
  };
}

/** Carries out one slot action. */
export async function applySlotAction(sql: SlotSql, action: SlotAction): Promise<void> {
  switch (action.kind) {
    case "create":
      await sql.query("SELECT pg_create_physical_replication_slot($1, $2)", [
        action.name,
        action.reserveAt !== undefined,
      ]);
      return;
    case "advance":
      await sql.query("SELECT pg_replication_slot_advance($1, $2::pg_lsn)", [action.name, action.to]);
      return;
    case "drop":
      await sql.query("SELECT pg_drop_replication_slot($1)", [action.name]);
      return;
    default: {
      const never: never = action;
      throw new Error(`unknown slot action ${JSON.stringify(never)}`);
    }
  }
}

/** Runs the actions one by one; a failing one does not keep the others from being tried. Gives the number of failures. */
export async function applySlotActions(
  context: InstanceContext,
  sql: SlotSql,
  actions: readonly SlotAction[],
): Promise<number> {
  let failures = 0;
  for (const action of actions) {
    try {
      await applySlotAction(sql, action);
      if (action.kind !== "advance") {
        context.logger.info("Changed a replication slot", {
          action: action.kind,
          slot: action.name,
          reason: action.reason,
        });
      }
    } catch (error) {
      failures += 1;
      context.logger.warning("Could not change a replication slot", { action: action.kind, slot: action.name, error });
    }
  }
  return failures;
}

/** Keeps the slots that the other instances stream through; true when another look is needed soon. */
export async function reconcilePrimarySlots(
  context: InstanceContext,
  cluster: Cluster,
  sql: SlotSql,
): Promise<boolean> {
  const settings = cluster.spec.replicationSlots?.highAvailability;
  if (!settings) return false;
  const prefix = settings.slotPrefix || defaultSlotPrefix;
  const me = context.settings.podName;
  const names = cluster.status?.instanceNames;
  // Not told yet is not "nobody": every slot would be dropped, and with it the WAL that the standbys still need.
  if (!names?.length) return false;
  const others = names.filter((name) => name !== me);
  const { actions, retry } = planPrimarySlots({
    slots: (await sql.query(physicalSlots)).map(readSlot),
    expected: others.map((name) => slotNameOf(name, prefix)),
    prefix,
    enabled: usesHaSlots(cluster),
  });
  const failures = await applySlotActions(context, sql, actions);
  return retry || failures > 0;
}
