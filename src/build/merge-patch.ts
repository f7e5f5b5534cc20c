import { sameJson } from "./same-json.ts";

type JsonObject = Record<string, unknown>;

/** The JSON merge patch (RFC 7386) that leads from one object to another. */
export function createMergePatch(from: JsonObject, to: JsonObject): JsonObject {
  const patch: JsonObject = {};
  for (const key of Object.keys(from)) if (to[key] === undefined && from[key] !== undefined) patch[key] = null;
  for (const [key, value] of Object.entries(to)) {
    const before = from[key];
    if (value === undefined || sameJson(before, value)) continue;
    patch[key] = isObject(before) && isObject(value) ? createMergePatch(before, value) : value;
  }
  return patch;
}

/** Applies a JSON merge patch; neither argument is changed. */
export function applyMergePatch(target: JsonObject, patch: JsonObject): JsonObject {
  const result: JsonObject = { ...target };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else if (isObject(value)) {
      const before = result[key];
      result[key] = applyMergePatch(isObject(before) ? before : {}, value);
    } else if (value !== undefined) result[key] = value;
  }
  return result;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
