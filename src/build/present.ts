type Loose<T> = { [K in keyof T]: T[K] | undefined };

/** Drops the keys whose value is `undefined`, so that objects read as they are sent. */
export function present<T extends object>(value: Loose<T>): T {
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined)) as T;
}

/** A list, or `undefined` when there is nothing in it. */
export function nonEmpty<T>(list: readonly T[] | undefined): T[] | undefined {
  return list && list.length > 0 ? [...list] : undefined;
}
