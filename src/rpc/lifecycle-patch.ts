// Applies the JSON patch (RFC 6902) of a plugin, all or nothing: the whole patch is checked before its first operation, a
// parent or target that does not exist is an error, and the document given is never changed.
import { isDeepStrictEqual } from "node:util";
import { type Json, type Location, locate, valueAt } from "./json-pointer.ts";
import { PatchError } from "./patch-error.ts";

/** One operation of a JSON patch. */
export type JsonPatchOperation =
  | { op: "add" | "replace" | "test"; path: string; value: unknown }
  | { op: "remove"; path: string }
  | { op: "move" | "copy"; from: string; path: string };

/** The document after the patch; an empty patch gives back the document itself. */
export function applyLifecyclePatch<T extends object>(document: T, patch: Uint8Array | string): T {
  const text = typeof patch === "string" ? patch : Buffer.from(patch).toString("utf8");
  if (text.trim() === "") return document;
  const operations = parsePatch(text);
  if (operations.length === 0) return document;
  let current = structuredClone(document) as Json;
  for (const [index, operation] of operations.entries()) {
    try {
      current = applyOperation(current, operation);
    } catch (error) {
      if (!(error instanceof PatchError)) throw error;
      throw new PatchError(`operation ${index} (${operation.op}) cannot be applied: ${error.message}`);
    }
  }
  if (typeof current !== "object" || current === null || Array.isArray(current)) {
    throw new PatchError("the patch turns the object into something else");
  }
  return current as T;
}

/** Checks the text of a patch as a whole. */
export function parsePatch(text: string): JsonPatchOperation[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new PatchError("the patch is not JSON", { cause });
  }
  if (!Array.isArray(value)) throw new PatchError("the patch is not a list of operations");
  return value.map((operation: unknown, index) => checkOperation(operation, index));
}

function checkOperation(operation: unknown, index: number): JsonPatchOperation {
  const fail = (problem: string) => new PatchError(`operation ${index} ${problem}`);
  if (typeof operation !== "object" || operation === null) throw fail("is no object");
  const { op, path, from } = operation as { op?: unknown; path?: unknown; from?: unknown };
  if (typeof path !== "string") throw fail("has no path");
  switch (op) {
    case "add":
    case "replace":
    case "test":
      if (!Object.hasOwn(operation, "value"))
        throw fail(`(${op} ${path}) has no value; write null where null is meant`);
      return operation as JsonPatchOperation;
    case "move":
    case "copy":
      if (typeof from !== "string") throw fail(`(${op} ${path}) has no from`);
      return operation as JsonPatchOperation;
    case "remove":
      return operation as JsonPatchOperation;
    default:
      throw fail(`has the unknown op ${JSON.stringify(op)}`);
  }
}

function applyOperation(document: Json, operation: JsonPatchOperation): Json {
  switch (operation.op) {
    case "add":
      return insert(document, operation.path, structuredClone(operation.value) as Json);
    case "replace":
      return replace(document, operation.path, structuredClone(operation.value) as Json);
    case "remove":
      remove(document, operation.path);
      return document;
    case "copy":
      return insert(document, operation.path, structuredClone(existing(document, operation.from).value));
    case "move": {
      if (operation.path.startsWith(`${operation.from}/`)) {
        throw new PatchError(`${operation.from} cannot move into itself`);
      }
      const value = remove(document, operation.from);
      return insert(document, operation.path, value);
    }
    case "test": {
      if (isDeepStrictEqual(existing(document, operation.path).value, operation.value)) return document;
      throw new PatchError(`${operation.path} has another value`);
    }
  }
}

function insert(document: Json, path: string, value: Json): Json {
  const location = locate(document, path, true);
  if (location.kind === "root") return value;
  if (location.kind === "element") location.parent.splice(location.index, 0, value);
  else setMember(location.parent, location.key, value);
  return document;
}

function replace(document: Json, path: string, value: Json): Json {
  const { location } = existing(document, path);
  if (location.kind === "root") return value;
  if (location.kind === "element") location.parent[location.index] = value;
  else setMember(location.parent, location.key, value);
  return document;
}

function remove(document: Json, path: string): Json {
  const { location, value } = existing(document, path);
  if (location.kind === "root") throw new PatchError("the whole object cannot be removed");
  if (location.kind === "element") location.parent.splice(location.index, 1);
  else delete location.parent[location.key];
  return value;
}

function existing(document: Json, path: string): { location: Location; value: Json } {
  const location = locate(document, path, false);
  const value = valueAt(document, location);
  if (value === undefined) throw new PatchError(`${path} does not exist`);
  return { location, value };
}

/** As JSON.parse does it: a member called `__proto__` is data, never the prototype. */
function setMember(parent: { [key: string]: Json }, key: string, value: Json): void {
  if (key === "__proto__") {
    Object.defineProperty(parent, key, { value, enumerable: true, configurable: true, writable: true });
  } else parent[key] = value;
}
