import { invalid } from "./field-issue.ts";
import { type ClusterRule, when } from "./rule.ts";

/** Only one thing archives the WAL. */
export const checkPlugins: ClusterRule = ({ spec }) => {
  const archivers = (spec.plugins ?? [])
    .filter(({ enabled = true, isWALArchiver = false }) => enabled && isWALArchiver)
    .map(({ name }) => name);
  return [
    ...when(
      archivers.length > 0 && spec.backup?.barmanObjectStore !== undefined,
      invalid("spec.plugins", archivers, "Cannot enable a WAL archiver plugin when barmanObjectStore is configured"),
    ),
    ...when(
      archivers.length > 1,
      invalid("spec.plugins", archivers, "Cannot enable more than one WAL archiver plugin"),
    ),
  ];
};
