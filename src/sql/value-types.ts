import pg from "pg";

/**
 * Types that stay as PostgreSQL writes them: dates and intervals would lose microseconds and infinity, JSON and binary
 * values have nobody here who wants them parsed. All others follow node-postgres: booleans, small integers and floats
 * become scalars, 64-bit integers and numerics stay text, arrays become arrays.
 */
const textTypes: ReadonlySet<number> = new Set([
  17, // bytea
  114, // json
  600, // point
  718, // circle
  1082, // date
  1114, // timestamp
  1184, // timestamptz
  1186, // interval
  3802, // jsonb
  1115, // timestamp[]
  1182, // date[]
  1185, // timestamptz[]
  1187, // interval[]
  199, // json[]
  3807, // jsonb[]
]);

const asText = (value: string) => value;

/** Parsers of {@link SqlSession.query}. */
export const parsedTypes: pg.CustomTypesConfig = {
  getTypeParser: ((id: number, format?: "text" | "binary") =>
    textTypes.has(id) ? asText : pg.types.getTypeParser(id, format ?? "text")) as pg.CustomTypesConfig["getTypeParser"],
};

/** Every value as text. */
export const rawTypes: pg.CustomTypesConfig = {
  getTypeParser: (() => asText) as pg.CustomTypesConfig["getTypeParser"],
};
