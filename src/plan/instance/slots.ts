import { parseLsn } from "../../postgres/lsn.ts";

/** A physical replication slot as PostgreSQL shows it. */
export interface Slot {
  name: string;
  active: boolean;
  /** `null` while the slot has never been used. */
  restartLsn: string | null;
  /** Whether it holds back vacuum (xmin or catalog_xmin). */
  holdsXmin: boolean;
}

export type SlotAction =
  | { kind: "create"; name: string; reserveAt: string | undefined; reason: string }
  | { kind: "advance"; name: string; to: string; reason: string }
  | { kind: "drop"; name: string; reason: string };

/** Pause between two copies of the primary's slots when none is set, in seconds. */
const defaultCopySeconds = 30;

/** Pause between two copies of the primary's slots, in milliseconds; `updateInterval` is in seconds. */
export function slotCopyPauseMs(updateInterval: number | undefined): number {
  const isUsable = updateInterval !== undefined && Number.isFinite(updateInterval) && updateInterval > 0;
  return (isUsable ? updateInterval : defaultCopySeconds) * 1000;
}

export interface PrimarySlotsView {
  slots: readonly Slot[];
  /** Names of the slots that the other instances need. */
  expected: readonly string[];
  prefix: string;
  /** `highAvailability.enabled`. */
  enabled: boolean;
}

/** Slots the primary keeps for its standbys. An unexpected slot that is in use is dropped on a later pass. */
export function planPrimarySlots(view: PrimarySlotsView): { actions: SlotAction[]; retry: boolean } {
  const expected = new Set(view.enabled ? view.expected : []);
  const present = new Set(view.slots.map((slot) => slot.name));
  const actions: SlotAction[] = [];
  for (const name of expected) {
    if (!present.has(name)) {
      actions.push({ kind: "create", name, reserveAt: undefined, reason: "a standby needs it" });
    }
  }
  let retry = false;
  for (const slot of view.slots) {
    if (!slot.name.startsWith(view.prefix) || expected.has(slot.name)) continue;
    if (slot.active) retry = true;
    else actions.push({ kind: "drop", name: slot.name, reason: "no standby needs it" });
  }
  return { actions, retry };
}

export interface StandbySlotsView {
  local: readonly Slot[];
  primary: readonly Slot[];
  /** Name of the slot on the primary that serves this very instance. */
  mySlot: string;
  prefix: string;
  /** `highAvailability.enabled`. */
  enabled: boolean;
  /** `synchronizeReplicas.enabled`. */
  synchronizeUserSlots: boolean;
  /** Whether a name matches `synchronizeReplicas.excludePatterns`. */
  isExcluded: (name: string) => boolean;
}

/** Whether a slot is one of those that take part in the copying at all. */
function takesPart(view: StandbySlotsView, name: string): boolean {
  return name.startsWith(view.prefix) || !view.isExcluded(name);
}

function isWanted(view: StandbySlotsView, slot: Slot): boolean {
  if (slot.name === view.mySlot || !view.enabled) return false;
  if (slot.name.startsWith(view.prefix)) return slot.restartLsn !== null;
  return view.synchronizeUserSlots;
}

/** Slots a standby keeps as copies of the primary's, so that it can serve the others after a promotion. */
export function planStandbySlots(view: StandbySlotsView): SlotAction[] {
  const actions: SlotAction[] = [];
  const local = new Map(view.local.map((slot) => [slot.name, slot]));
  const onPrimary = new Set(view.primary.map((slot) => slot.name));
  for (const slot of view.primary) {
    if (!takesPart(view, slot.name) || !isWanted(view, slot)) continue;
    const copy = local.get(slot.name);
    if (!copy) {
      actions.push({
        kind: "create",
        name: slot.name,
        reserveAt: slot.restartLsn ?? undefined,
        reason: "the primary has it",
      });
    }
    if (slot.restartLsn !== null && isAhead(slot.restartLsn, copy?.restartLsn) && !copy?.active) {
      actions.push({ kind: "advance", name: slot.name, to: slot.restartLsn, reason: "the primary's copy moved" });
    }
  }
  for (const slot of view.local) {
    if (!takesPart(view, slot.name) || slot.active) continue;
    const reason = dropReason(view, slot, onPrimary);
    if (reason) actions.push({ kind: "drop", name: slot.name, reason });
  }
  // One drop per name, and nothing for a slot that goes away anyway.
  const dropped = new Set(actions.flatMap((action) => (action.kind === "drop" ? [action.name] : [])));
  return actions.filter((action) => action.kind === "drop" || !dropped.has(action.name));
}

/** A slot that was just made may lie further than the primary's, and none is ever moved back: PostgreSQL refuses that. */
function isAhead(primary: string, copy: string | null | undefined): boolean {
  const [wanted, present] = [parseLsn(primary), parseLsn(copy ?? "")];
  return wanted === undefined || present === undefined || wanted > present;
}

function dropReason(view: StandbySlotsView, slot: Slot, onPrimary: ReadonlySet<string>): string | undefined {
  const isHa = slot.name.startsWith(view.prefix);
  if (slot.name === view.mySlot) return "it serves this very instance";
  if (!onPrimary.has(slot.name)) return "the primary does not have it";
  if (slot.holdsXmin) return "it holds back vacuum";
  if (isHa && !view.enabled) return "slots for high availability are off";
  if (!isHa && !view.synchronizeUserSlots) return "copying of user slots is off";
  return undefined;
}
