import { stringify } from "yaml";
import type { CrdManifest } from "../crds/index.ts";
import { sortKeys } from "./canonical.ts";

/** One YAML document, keys in order and no line folded, so that a change of a field is a change of a line. */
export function renderManifest(crd: CrdManifest): string {
  return stringify(sortKeys(crd), { lineWidth: 0, aliasDuplicateObjects: false });
}

/** All documents of `dist/crds.k8s.yaml`. */
export function renderManifests(crds: readonly CrdManifest[]): string {
  return crds.map(renderManifest).join("---\n");
}
