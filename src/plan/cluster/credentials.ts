import { clusterName, secretNames } from "../../api/cluster-facts.ts";
import { childNames } from "../../api/names.ts";
import { buildPullSecret, wantsApplicationSecret, wantsSuperuserSecret } from "../../build/credentials.ts";
import { inheritedMetadata, ownsObject } from "../../build/metadata.ts";
import { mergeMetadata } from "../../build/metadata-repair.ts";
import { sameJson } from "../../build/same-json.ts";
import { refTo } from "./actions.ts";
import type { Problem } from "./auxiliary.ts";
import type { Pass } from "./pass.ts";

/** Secrets with the users' credentials, and the copy of the operator's pull secret. Contents are drawn once. */
export function planCredentials(pass: Pass): Problem[] {
  planUserSecret(pass, "superuser", wantsSuperuserSecret(pass.cluster));
  planUserSecret(pass, "app", wantsApplicationSecret(pass.cluster));
  planSuperuserRemoval(pass);
  planPullSecret(pass);
  return [];
}

function planUserSecret(pass: Pass, user: "superuser" | "app", isWanted: boolean): void {
  if (!isWanted) return;
  const name = secretNames(pass.cluster)[user];
  const live = pass.observed.secrets.get(name);
  if (!live) {
    pass.actions.push({ kind: "createCredentials", user, reason: `secret ${name} does not exist` });
    return;
  }
  if (!ownsObject(pass.cluster, live)) return;
  const metadata = mergeMetadata(live.metadata, inheritedMetadata(pass.cluster, pass.observed.operator.context));
  if (!metadata) return;
  const reason = `labels or annotations of secret ${name} differ from what the cluster asks for`;
  const patch = { metadata: { labels: metadata.labels ?? {}, annotations: metadata.annotations ?? {} } };
  pass.actions.push({ kind: "patch", target: refTo(live), patch, bestEffort: false, reason });
}

function planSuperuserRemoval(pass: Pass): void {
  if (pass.cluster.spec.enableSuperuserAccess) return;
  const live = pass.observed.secrets.get(childNames(clusterName(pass.cluster)).superuser);
  if (!live || live.metadata.deletionTimestamp || !ownsObject(pass.cluster, live)) return;
  const reason = "superuser access is disabled";
  const target = refTo(live, { content: true });
  pass.actions.push({ kind: "delete", target, propagation: "Background", bestEffort: false, reason });
}

function planPullSecret(pass: Pass): void {
  const source = pass.observed.operatorObjects.pullSecret;
  if (!source) return;
  const wanted = buildPullSecret(pass.cluster, source, pass.observed.operator.context);
  const live = pass.observed.secrets.get(wanted.metadata.name ?? "");
  const reason = `pull secret ${source.metadata.name} is copied for the cluster`;
  if (!live) pass.actions.push({ kind: "create", object: { ...wanted }, mustOwn: true, reason });
  else if (ownsObject(pass.cluster, live) && !sameJson(live.data ?? {}, wanted.data ?? {})) {
    const patch = { data: wanted.data ?? {} };
    pass.actions.push({ kind: "patch", target: refTo(live, { content: true }), patch, bestEffort: false, reason });
  }
}
