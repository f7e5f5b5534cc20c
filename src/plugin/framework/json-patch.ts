import { escapeToken } from "../../rpc/json-pointer.ts";
import type { JsonPatchOperation } from "../../rpc/lifecycle-patch.ts";
import type { PatchAnswer } from "./services.ts";

/**
 * The JSON patch from one object to another, compared as JSON documents. Lists are compared by index: common elements in
 * place, further ones added at their index, surplus ones removed from the end. The same input gives the same patch.
 */
export function buildJsonPatch(before: object, after: object): JsonPatchOperation[] {
  const operations: JsonPatchOperation[] = [];
  // A round trip drops what JSON cannot say, for example members that are undefined.
  diff(toJson(before), toJson(after), "", operations);
  return operations;
}

/** Text of a patch as it goes over the wire; nothing when it changes nothing. */
export function encodeJsonPatch(operations: PatchAnswer): Uint8Array {
  if (operations === undefined || operations.length === 0) return new Uint8Array();
  return new TextEncoder().encode(JSON.stringify(operations));
}

function diff(before: unknown, after: unknown, path: string, operations: JsonPatchOperation[]): void {
  if (Array.isArray(before) && Array.isArray(after)) diffLists(before, after, path, operations);
  else if (isRecord(before) && isRecord(after)) diffRecords(before, after, path, operations);
  else if (before !== after) operations.push({ op: "replace", path, value: after });
}

function diffRecords(
  before: Record<string, unknown>,
  after: Record<string, unknown>,
  path: string,
  operations: JsonPatchOperation[],
): void {
  for (const key of Object.keys(before)) {
    if (!Object.hasOwn(after, key)) operations.push({ op: "remove", path: `${path}/${escapeToken(key)}` });
  }
  for (const [key, value] of Object.entries(after)) {
    const child = `${path}/${escapeToken(key)}`;
    if (Object.hasOwn(before, key)) diff(before[key], value, child, operations);
    else operations.push({ op: "add", path: child, value });
  }
}

function diffLists(before: unknown[], after: unknown[], path: string, operations: JsonPatchOperation[]): void {
  const common = Math.min(before.length, after.length);
  for (let index = 0; index < common; index++) diff(before[index], after[index], `${path}/${index}`, operations);
  for (let index = before.length - 1; index >= common; index--) {
    operations.push({ op: "remove", path: `${path}/${index}` });
  }
  for (let index = common; index < after.length; index++) {
    operations.push({ op: "add", path: `${path}/${index}`, value: after[index] });
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function toJson(value: object): unknown {
  return JSON.parse(JSON.stringify(value));
}
