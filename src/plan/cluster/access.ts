import { clusterName, secretNames } from "../../api/cluster-facts.ts";
import { ownsObject } from "../../build/metadata.ts";
import { mergeMetadata } from "../../build/metadata-repair.ts";
import { buildRole, buildRoleBinding, sameRules } from "../../build/role.ts";
import { sameJson } from "../../build/same-json.ts";
import { buildServiceAccount, mergeServiceAccount } from "../../build/service-account.ts";
import type { Problem } from "./auxiliary.ts";
import { draftCluster, type Pass, recordEvent } from "./pass.ts";

/** ServiceAccount, Role and RoleBinding of the instances (reference: cluster controller §2.8). */
export function planAccess(pass: Pass): Problem[] {
  return [...planServiceAccount(pass), ...planRole(pass), ...planRoleBinding(pass)];
}

function notOurs(kind: string, name: string): Problem {
  return {
    event: "ObjectConflict",
    message: `${kind} ${name} exists and does not belong to the cluster: remove it, or give the cluster another name`,
  };
}

function planServiceAccount(pass: Pass): Problem[] {
  const given = pass.cluster.spec.serviceAccountName;
  if (given) {
    if (pass.observed.serviceAccounts.has(given)) return [];
    const message = `Specified ServiceAccount "${given}" not found in namespace "${pass.cluster.metadata.namespace}"`;
    return [{ event: "ServiceAccountNotFound", message }];
  }
  const name = clusterName(pass.cluster);
  const pull = secretNames(pass.cluster).pull;
  const hasPullSecret = pass.observed.operatorObjects.pullSecret !== undefined || pass.observed.secrets.has(pull);
  const wanted = buildServiceAccount(pass.cluster, pass.observed.operator.context, { pullSecret: hasPullSecret });
  const live = pass.observed.serviceAccounts.get(name);
  if (!live) {
    recordEvent(pass, "Normal", "CreatingServiceAccount", "Creating ServiceAccount");
    pass.actions.push({
      kind: "create",
      object: { ...wanted },
      mustOwn: true,
      reason: `service account ${name} does not exist`,
    });
    return [];
  }
  if (!ownsObject(pass.cluster, live)) return [notOurs("service account", name)];
  const merged = mergeServiceAccount(live, wanted);
  if (!merged) return [];
  recordEvent(pass, "Normal", "UpdatingServiceAccount", "Updating ServiceAccount");
  pass.actions.push({ kind: "update", object: { ...merged }, reason: `service account ${name} is out of date` });
  return [];
}

function planRole(pass: Pass): Problem[] {
  const name = clusterName(pass.cluster);
  const backup = pass.cluster.spec.bootstrap?.recovery?.backup?.name;
  const originBackup = backup ? pass.observed.backups.get(backup) : undefined;
  const wanted = buildRole(draftCluster(pass), pass.observed.operator.context, {
    databaseRoles: pass.observed.databaseRoles,
    ...(originBackup ? { originBackup } : {}),
  });
  const live = pass.observed.roles.get(name);
  if (!live) {
    recordEvent(pass, "Normal", "CreatingRole", "Creating Cluster Role");
    pass.actions.push({ kind: "create", object: { ...wanted }, mustOwn: true, reason: `role ${name} does not exist` });
    return [];
  }
  if (!ownsObject(pass.cluster, live)) return [notOurs("role", name)];
  const metadata = mergeMetadata(live.metadata, wanted.metadata);
  if (!metadata && sameRules(live.rules, wanted.rules)) return [];
  recordEvent(pass, "Normal", "UpdatingRole", "Updating Cluster Role");
  const object = { ...live, metadata: metadata ?? live.metadata, rules: wanted.rules };
  pass.actions.push({ kind: "update", object, reason: `role ${name} is out of date` });
  return [];
}

function planRoleBinding(pass: Pass): Problem[] {
  const name = clusterName(pass.cluster);
  const wanted = buildRoleBinding(pass.cluster, pass.observed.operator.context);
  const live = pass.observed.roleBindings.get(name);
  if (!live) {
    pass.actions.push({
      kind: "create",
      object: { ...wanted },
      mustOwn: true,
      reason: `role binding ${name} does not exist`,
    });
    return [];
  }
  if (!ownsObject(pass.cluster, live)) return [notOurs("role binding", name)];
  if (sameJson(live.subjects, wanted.subjects)) return [];
  const object = { ...live, subjects: wanted.subjects };
  pass.actions.push({ kind: "update", object, reason: `role binding ${name} names another account` });
  return [];
}
