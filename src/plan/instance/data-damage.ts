/** How PostgreSQL refused a new session. */
export interface SessionRefusal {
  /** SQLSTATE. */
  code?: unknown;
  message?: unknown;
  detail?: unknown;
}

/** States of a server that could not use its own files; that there was no room or no handle for them is none of these. */
const damageStates: ReadonlySet<unknown> = new Set(["22023", "3D000", "58P01", "58030", "XX000", "XX001", "XX002"]);

/** A file or folder that every session of a database needs, as messages name it in any language. */
const dataFile = /(?:^|[^\w/])(?:base\/\d+|global\/\w+)/;

/**
 * In the server's words, that files of its data folder are gone or cannot be read, so that nobody gets into the database any
 * more; `undefined` for every other refusal: of a server that starts or is full, or that merely lacks the database.
 */
export function describeDataDamage({ code, message, detail }: SessionRefusal): string | undefined {
  if (!damageStates.has(code)) return undefined;
  const text = [message, detail].filter((it): it is string => typeof it === "string" && it !== "").join("; ");
  return dataFile.test(text) ? text : undefined;
}
