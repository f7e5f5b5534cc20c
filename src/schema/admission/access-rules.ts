import type { Cluster } from "../../api/generated/cluster.ts";
import { duplicate, type FieldIssue, invalid } from "./field-issue.ts";
import { checkLabelSelector } from "./label-syntax.ts";
import { type ClusterRule, when } from "./rule.ts";

/** Who may connect: LDAP, lines of pg_hba and the pods that they name. */
export const checkAccess: ClusterRule = (cluster) => [
  ...checkLdap(cluster),
  ...checkPodSelectors(cluster),
  ...checkHbaLines(cluster),
];

function checkLdap({ spec }: Cluster): FieldIssue[] {
  const ldap = spec.postgresql?.ldap;
  if (!ldap) return [];
  const path = "spec.postgresql.ldap";
  return [
    ...when(
      !ldap.server,
      invalid(path, ldap, "ldap server cannot be empty if any other ldap parameters are specified"),
    ),
    ...when(
      ldap.bindAsAuth !== undefined && ldap.bindSearchAuth !== undefined,
      invalid(path, ldap, "only bind+search or bind method can be specified"),
    ),
  ];
}

function checkPodSelectors({ spec }: Cluster): FieldIssue[] {
  const seen = new Set<string>();
  return (spec.podSelectorRefs ?? []).flatMap(({ name, selector }, i) => {
    const path = `spec.podSelectorRefs[${i}]`;
    const repeated = seen.has(name);
    seen.add(name);
    const problems = checkLabelSelector(selector);
    return [
      ...when(repeated, duplicate(`${path}.name`, name)),
      ...when(problems.length > 0, invalid(`${path}.selector`, selector, problems.join("; "))),
    ];
  });
}

function checkHbaLines({ spec }: Cluster): FieldIssue[] {
  const known = new Set((spec.podSelectorRefs ?? []).map(({ name }) => name));
  return (spec.postgresql?.pg_hba ?? []).flatMap((line, i) => {
    const path = `spec.postgresql.pg_hba[${i}]`;
    const references = [...line.matchAll(/\$\{([^:}]*):([^}]*)\}/g)];
    return [
      ...when(references.length > 1, invalid(path, line, "at most one podselector reference is allowed per line")),
      ...references.flatMap(([, type, name = ""]) => {
        if (type !== "podselector") return [invalid(path, line, `unknown descriptor type: ${type}`)];
        return when(!known.has(name), invalid(path, line, `pod selector not found: ${name}`));
      }),
    ];
  });
}
