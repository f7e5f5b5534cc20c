import { AsyncLocalStorage } from "node:async_hooks";

type Fields = Readonly<Record<string, unknown>>;

const scopes = new AsyncLocalStorage<Fields>();

/**
 * Adds fields to every record that is written by this work and by what it starts, whoever writes it: a pass goes through parts
 * that have loggers of their own and know nothing of it.
 */
export function withLogFields<T>(fields: Fields, work: () => T): T {
  return scopes.run({ ...scopes.getStore(), ...fields }, work);
}

/** The fields of the work under way. */
export function scopedLogFields(): Fields | undefined {
  return scopes.getStore();
}
