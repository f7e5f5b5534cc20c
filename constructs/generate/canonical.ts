/** Plain data with the keys of every object in order, so that equal data gives equal text. */
export function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sortKeys(value[key])]),
  );
}

/**
 * A schema, or an object that holds schemas, without descriptions.
 * Below `properties` the keys are names of fields, one of which may well be called "description".
 */
export function withoutDescriptions(value: unknown, keysAreFields = false): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutDescriptions(item));
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => keysAreFields || key !== "description")
      .map(([key, item]) => [key, withoutDescriptions(item, !keysAreFields && key === "properties")]),
  );
}

/** Whether a value is an object with keys. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
