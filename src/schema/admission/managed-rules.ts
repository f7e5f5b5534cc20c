import { clusterName } from "../../api/cluster-facts.ts";
import { roles as systemRoles } from "../../api/constants.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { childNames } from "../../api/names.ts";
import { type FieldIssue, invalid } from "./field-issue.ts";
import { type ClusterRule, when } from "./rule.ts";

/** Services that the user adds or leaves out. */
export const checkManagedServices: ClusterRule = (cluster) => {
  const { additional = [], disabledDefaultServices = [] } = cluster.spec.managed?.services ?? {};
  const path = "spec.managed.services";
  const names = additional.map(({ serviceTemplate }) => serviceTemplate.metadata?.name ?? "");
  const named = names.filter((name) => name !== "");
  return [
    ...when(
      disabledDefaultServices.includes("rw"),
      invalid(`${path}.disabledDefaultServices`, "rw", "service of type RW cannot be disabled."),
    ),
    ...additional.flatMap((service, i) => checkService(cluster, `${path}.additional[${i}]`, service)),
    ...when(
      new Set(named).size < named.length,
      invalid(`${path}.additional`, names, "contains services with the same .metadata.name"),
    ),
  ];
};

type Additional = NonNullable<NonNullable<NonNullable<Cluster["spec"]["managed"]>["services"]>["additional"]>[number];

function checkService(cluster: Cluster, path: string, { serviceTemplate }: Additional): FieldIssue[] {
  const own = childNames(clusterName(cluster));
  const name = serviceTemplate.metadata?.name ?? "";
  const reserved: readonly string[] = [own.rw, own.ro, own.r, own.any];
  return [
    ...when(reserved.includes(name), invalid(path, name, `the service name: '${name}' is reserved for operator use`)),
    ...when(
      Object.keys(serviceTemplate.spec?.selector ?? {}).length > 0,
      invalid(path, serviceTemplate.spec?.selector, "selector field is managed by the operator"),
    ),
    ...when(name === "", invalid(path, name, "name is required")),
  ];
}

/** Roles that the user declares. */
export const checkManagedRoles: ClusterRule = ({ spec }) => {
  const seen = new Set<string>();
  return (spec.managed?.roles ?? []).flatMap((role) => {
    const path = "spec.managed.roles";
    const repeated = seen.has(role.name);
    seen.add(role.name);
    return [
      ...when(repeated, invalid(path, role.name, "Role name is duplicate of another")),
      ...when(
        (role.connectionLimit ?? -1) < -1,
        invalid(path, role.name, "Connection limit should be positive, unless defaulting to -1"),
      ),
      ...when(isReservedRole(role.name), invalid(path, role.name, "This role is reserved for operator use")),
      ...when(
        Boolean(role.disablePassword) && role.passwordSecret !== undefined,
        invalid(path, role.name, "This role both sets and disables a password"),
      ),
    ];
  });
};

function isReservedRole(name: string): boolean {
  const system: readonly string[] = Object.values(systemRoles);
  return system.includes(name) || name.startsWith("cnpg_") || name.startsWith("pg_");
}
