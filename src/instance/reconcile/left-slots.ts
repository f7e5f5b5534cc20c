import { type LogicalSlot, planLeftSlots } from "../../plan/instance/left-slots.ts";
import type { Logger } from "../../ports/logger.ts";
import type { SlotSql } from "./slots.ts";

const serverFacts = `
  SELECT current_setting('server_version_num')::int / 10000 AS major,
         current_setting('shared_preload_libraries') AS preloaded,
         coalesce(current_setting('sync_replication_slots', true), 'off') = 'on' AS server_copies`;

// By their JSON, for versions that lack some of the columns.
const logicalSlots = `
  SELECT slot_name, active,
         coalesce((to_jsonb(s) ->> 'failover')::boolean, false) AS failover,
         coalesce((to_jsonb(s) ->> 'synced')::boolean, false) AS synced
    FROM pg_replication_slots s
   WHERE slot_type = 'logical' AND NOT temporary AND pg_is_in_recovery() ORDER BY slot_name`;

// The server may have been promoted since they were read; then they are in use again.
const dropOnStandby = `
  SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots
   WHERE slot_name = $1 AND NOT active AND pg_is_in_recovery()`;

function readLogicalSlot(row: Record<string, unknown>): LogicalSlot {
  return {
    name: String(row["slot_name"]),
    active: row["active"] === true,
    failover: row["failover"] === true,
    synced: row["synced"] === true,
  };
}

/** Takes away the logical slots that a standby has from when it was the primary; one that fails is tried again next time. */
export async function dropLeftSlots(
  sql: SlotSql,
  { isExcluded, logger }: { isExcluded: (name: string) => boolean; logger: Logger },
): Promise<void> {
  const slots = (await sql.query(logicalSlots)).map(readLogicalSlot);
  if (slots.length === 0) return;
  const [facts = {}] = await sql.query(serverFacts);
  const actions = planLeftSlots({
    slots,
    major: Number(facts["major"]),
    preloaded: String(facts["preloaded"]),
    serverCopies: facts["server_copies"] === true,
    isExcluded,
  });
  for (const { name, reason } of actions) {
    try {
      await sql.query(dropOnStandby, [name]);
      logger.info("Changed a replication slot", { action: "drop", slot: name, reason });
    } catch (error) {
      logger.warning("Could not change a replication slot", { action: "drop", slot: name, error });
    }
  }
}
