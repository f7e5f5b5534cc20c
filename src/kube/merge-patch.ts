type JsonObject = Record<string, unknown>;

/**
 * The smallest JSON merge patch (RFC 7386) that turns `before` into `after`; `undefined` when they are equal. Lists are
 * replaced as a whole. A field that is `undefined` counts as absent.
 */
export function diffMergePatch(before: unknown, after: unknown): JsonObject | undefined {
  if (!isObject(before) || !isObject(after)) throw new Error("only objects can be merge-patched");
  const patch: JsonObject = {};
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const was = before[key];
    const is = after[key];
    if (is === undefined) {
      if (was !== undefined) patch[key] = null;
    } else if (isObject(is) && isObject(was)) {
      const inner = diffMergePatch(was, is);
      if (inner) patch[key] = inner;
    } else if (!jsonEqual(was, is)) {
      patch[key] = is;
    }
  }
  return Object.keys(patch).length > 0 ? patch : undefined;
}

/** The result of a merge patch, as RFC 7386 says. */
export function applyMergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const result: JsonObject = isObject(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else if (value !== undefined) result[key] = applyMergePatch(result[key], value);
  }
  return result;
}

/** Equality of JSON values, whatever the order of fields; `undefined` fields count as absent. */
export function jsonEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, index) => jsonEqual(item, b[index]));
  }
  if (!isObject(a) || !isObject(b)) return false;
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].every((key) => jsonEqual(a[key], b[key]));
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
