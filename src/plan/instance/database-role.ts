// What decides about a DatabaseRole beside its definition (reference: declarative objects §1.4).

import { passwordSecretChange } from "../../api/database-role.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import type { DatabaseRole } from "../../api/generated/databaserole.ts";
import { isReservedRoleName } from "./managed-roles.ts";

/** Version of the password Secret that the operator saw last; empty before it saw one. */
export function passwordSecretVersion({ status }: DatabaseRole): string {
  return status?.conditions?.find(({ type }) => type === passwordSecretChange)?.message ?? "";
}

/** Why a DatabaseRole is left alone, if it is: the role belongs to the cluster's own definition, or to nobody. */
export function roleRefusal({ spec }: DatabaseRole, cluster: Cluster): string | undefined {
  if (spec.ensure === "absent") {
    return "ensure: absent is not supported for DatabaseRole; delete the resource with databaseRoleReclaimPolicy: delete instead";
  }
  if (isReservedRoleName(spec.name)) {
    return `role name ${JSON.stringify(spec.name)} is reserved and cannot be managed via DatabaseRole`;
  }
  if (cluster.spec.managed?.roles?.some(({ name }) => name === spec.name)) {
    return "database role is already managed by the CNPG cluster";
  }
  return undefined;
}
