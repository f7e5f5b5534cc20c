import { PatchError } from "./patch-error.ts";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** Where a path of a patch leads: a container and the key in it. */
export type Location =
  | { kind: "root" }
  | { kind: "member"; parent: { [key: string]: Json }; key: string }
  | { kind: "element"; parent: Json[]; index: number };

/** Splits a JSON pointer (RFC 6901) into its unescaped tokens. */
export function parsePointer(path: string): string[] {
  if (path === "") return [];
  if (!path.startsWith("/")) throw new PatchError(`path ${path} does not begin with "/"`);
  return path
    .slice(1)
    .split("/")
    .map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** Escapes one token of a JSON pointer. */
export function escapeToken(token: string): string {
  return token.replaceAll("~", "~0").replaceAll("/", "~1");
}

/**
 * Finds the place of a path. The parent must exist. `insert` allows the place behind the last element of a list, which
 * `-` names too; negative indexes count from the end, as Go plugins may write them.
 */
export function locate(document: Json, path: string, insert: boolean): Location {
  const tokens = parsePointer(path);
  const last = tokens.pop();
  if (last === undefined) return { kind: "root" };
  let parent = document;
  for (const token of tokens) {
    const next = step(parent, token);
    if (next === undefined) throw new PatchError(`${path}: "${token}" does not exist`);
    parent = next;
  }
  if (Array.isArray(parent)) return { kind: "element", parent, index: parseIndex(parent, last, path, insert) };
  if (typeof parent !== "object" || parent === null) throw new PatchError(`${path}: the parent holds no members`);
  return { kind: "member", parent, key: last };
}

/** The value at a place; `undefined` when there is none. */
export function valueAt(document: Json, location: Location): Json | undefined {
  if (location.kind === "root") return document;
  if (location.kind === "element") return location.parent[location.index];
  return Object.hasOwn(location.parent, location.key) ? location.parent[location.key] : undefined;
}

function step(parent: Json, token: string): Json | undefined {
  if (Array.isArray(parent)) return /^(0|-?[1-9]\d*)$/.test(token) ? parent.at(Number(token)) : undefined;
  if (typeof parent !== "object" || parent === null || !Object.hasOwn(parent, token)) return undefined;
  return parent[token];
}

function parseIndex(list: Json[], token: string, path: string, insert: boolean): number {
  if (token === "-") {
    if (insert) return list.length;
    throw new PatchError(`${path}: "-" names no element`);
  }
  if (!/^(0|-?[1-9]\d*)$/.test(token)) throw new PatchError(`${path}: "${token}" is no index of a list`);
  const number = Number(token);
  const places = list.length + (insert ? 1 : 0);
  const index = number < 0 ? number + places : number;
  if (index < 0 || index >= places) {
    throw new PatchError(`${path}: index ${number} is outside of a list of ${list.length}`);
  }
  return index;
}
