import type { Cluster } from "../../api/generated/cluster.ts";
import { type FieldIssue, invalid, required } from "./field-issue.ts";
import { type ClusterRule, when } from "./rule.ts";

type External = NonNullable<Cluster["spec"]["externalClusters"]>[number];

/** Other clusters that this one reads from. */
export const checkExternalClusters: ClusterRule = ({ spec }) => {
  const clusters = spec.externalClusters ?? [];
  const names = clusters.map(({ name }) => name);
  return [
    ...when(
      new Set(names).size < names.length,
      invalid("spec.externalClusters", names, "the list of external clusters contains duplicate values"),
    ),
    ...clusters.flatMap((external, i) => checkExternal(`spec.externalClusters[${i}]`, external)),
  ];
};

function checkExternal(path: string, external: External): FieldIssue[] {
  const reachable =
    Object.keys(external.connectionParameters ?? {}).length > 0 || external.plugin || external.barmanObjectStore;
  const files = { sslCert: external.sslCert, sslKey: external.sslKey, sslRootCert: external.sslRootCert };
  return [
    ...when(!reachable, required(path, "one of connectionParameters, plugin and barmanObjectStore is required")),
    ...checkFileName(`${path}.name`, external.name),
    ...Object.entries(files).flatMap(([field, selector]) => [
      ...checkFileName(`${path}.${field}.name`, selector?.name),
      ...checkFileName(`${path}.${field}.key`, selector?.key),
    ]),
  ];
}

/** These names become files in the instances. */
function checkFileName(path: string, name: string | undefined): FieldIssue[] {
  return when(
    name !== undefined && (name === "." || name === ".." || /[/\\]/.test(name)),
    invalid(path, name, "cannot contain a path separator or a '..' component"),
  );
}
