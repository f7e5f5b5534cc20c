/** Prefix of high-availability slots when the Cluster gives none. */
export const defaultSlotPrefix = "_cnpg_";

/** Replaces each run of characters that a slot name may not hold by one underscore. */
export function sanitizeSlotName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9_]+/g, "_");
}

/** Name of the high-availability slot that serves an instance. */
export function slotNameOf(instance: string, prefix: string = defaultSlotPrefix): string {
  return sanitizeSlotName(`${prefix}${instance}`);
}
