import type { SlotAction } from "./slots.ts";

/** A logical replication slot on a standby. */
export interface LogicalSlot {
  name: string;
  active: boolean;
  /** To be kept on standbys too; only a primary makes such slots. */
  failover: boolean;
  /** A copy that the server keeps by itself. */
  synced: boolean;
}

export interface LeftSlotsView {
  slots: readonly LogicalSlot[];
  /** PostgreSQL's major version. */
  major: number;
  /** `sync_replication_slots`: the server copies the primary's failover slots by itself. */
  serverCopies: boolean;
  /** `shared_preload_libraries` */
  preloaded: string;
  /** Whether a name matches `synchronizeReplicas.excludePatterns`. */
  isExcluded: (name: string) => boolean;
}

/** Libraries that copy logical slots to standbys, and look after them there. */
const copiers = ["pg_failover_slots", "pglogical", "bdr"];

/**
 * Logical slots that an instance kept from when it was the primary, and that nobody can ever use again. They hold back WAL and
 * vacuum; and by its name one keeps the primary's slot from being copied. A slot that somebody may have made here is not touched.
 */
export function planLeftSlots(view: LeftSlotsView): (SlotAction & { kind: "drop" })[] {
  const libraries = view.preloaded.split(",").map((name) => name.trim());
  if (copiers.some((name) => libraries.includes(name))) return [];
  return view.slots.flatMap((slot) => {
    const reason = slot.active || view.isExcluded(slot.name) ? undefined : leftReason(view, slot);
    return reason === undefined ? [] : [{ kind: "drop" as const, name: slot.name, reason }];
  });
}

function leftReason(view: LeftSlotsView, slot: LogicalSlot): string | undefined {
  if (view.major < 16) return "left from when this was the primary, and a standby of this version can't decode";
  if (view.serverCopies && slot.failover && !slot.synced) {
    return "left from when this was the primary, and in the way of the copy of the primary's slot";
  }
  return undefined;
}
