import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { customResourceDefinitions } from "../../constructs/crds/index.ts";
import { type DigestedCrd, digestCrd, normalizeCrd } from "../../constructs/generate/digests.ts";

/** How one definition of the reference compares with ours. */
export interface Comparison {
  readonly name: string;
  readonly digest: string;
  /** Where ours differs, as paths with a word on how; empty when they are equal. */
  readonly differences: readonly string[];
}

/** Compares each definition of the reference with ours, descriptions aside. */
export function compareDefinitions(folder: string): readonly Comparison[] {
  const ours = new Map(customResourceDefinitions.map((crd) => [crd.metadata.name, crd]));
  return readReferenceDefinitions(folder).map((reference) => {
    const { name } = reference.metadata;
    const own = ours.get(name);
    return {
      name,
      digest: digestCrd(reference),
      differences: own ? diff(normalizeCrd(reference), normalizeCrd(own), "spec") : ["absent"],
    };
  });
}

/** Definitions of the reference, sorted by name. */
export function readReferenceDefinitions(folder: string): readonly DigestedCrd[] {
  return readdirSync(join(folder, "crds"))
    .filter((name) => name.endsWith(".yaml"))
    .sort()
    .map((name) => parse(readFileSync(join(folder, "crds", name), "utf8")) as DigestedCrd);
}

function diff(wanted: unknown, own: unknown, path: string): string[] {
  if (JSON.stringify(wanted) === JSON.stringify(own)) return [];
  if (typeof wanted !== "object" || typeof own !== "object" || wanted === null || own === null) {
    return [`${path}: ${JSON.stringify(own)} instead of ${JSON.stringify(wanted)}`];
  }
  const left = wanted as Record<string, unknown>;
  const right = own as Record<string, unknown>;
  return [...new Set([...Object.keys(left), ...Object.keys(right)])].sort().flatMap((key) => {
    if (!Object.hasOwn(right, key)) return [`${path}.${key}: missing`];
    if (!Object.hasOwn(left, key)) return [`${path}.${key}: not in the reference`];
    return diff(left[key], right[key], `${path}.${key}`);
  });
}
