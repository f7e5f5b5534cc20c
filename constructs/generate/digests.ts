import { createHash } from "node:crypto";
import { isRecord, sortKeys, withoutDescriptions } from "./canonical.ts";

/** What a digest is made of: a CustomResourceDefinition, ours or the reference's. */
export interface DigestedCrd {
  readonly metadata: { readonly name: string };
  readonly spec: unknown;
}

/** Digest of what a definition accepts, defaults and shows: its spec without descriptions. */
export function digestCrd(crd: DigestedCrd): string {
  return createHash("sha256")
    .update(JSON.stringify(normalizeCrd(crd)))
    .digest("hex");
}

/** The spec in a form in which two definitions that mean the same are equal. */
export function normalizeCrd(crd: DigestedCrd): unknown {
  return sortKeys(sortWordLists(withoutDescriptions(crd.spec)));
}

/** The order of required fields, enum words and map keys says nothing. */
function sortWordLists(value: unknown): unknown {
  if (Array.isArray(value)) {
    const items = value.map(sortWordLists);
    return items.every((item) => typeof item === "string") ? items.sort() : items;
  }
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, sortWordLists(item)]));
}
