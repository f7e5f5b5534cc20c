import { secretNames } from "../../api/cluster-facts.ts";
import { cnpgApiVersion } from "../../api/constants.ts";
import { clientCertificateSecret } from "../../api/database-role.ts";
import type { DatabaseRole } from "../../api/generated/databaserole.ts";
import type { Secret } from "../../api/generated/kubernetes.ts";
import type { BuildContext } from "../../build/context.ts";
import { encodeData } from "../../build/credentials.ts";
import { controllerOf, managedByLabel } from "../../build/metadata.ts";
import { patchStatus } from "../../kube/patch-status.ts";
import { resources } from "../../kube/resources.ts";
import { inspectAuthority, inspectLeaf, secretText } from "../../pki/inspect.ts";
import { createLeaf, renewLeaf } from "../../pki/issue.ts";
import { type ObservedRole, planDatabaseRole, type RolePlan } from "../../plan/database-role/plan-database-role.ts";
import type { Clock } from "../../ports/clock.ts";
import { isKubeError, type KubeApi } from "../../ports/kube-api.ts";
import type { Logger } from "../../ports/logger.ts";
import type { ReconcileResult } from "../../runtime/controller.ts";
import type { OperatorStores } from "../stores.ts";

export interface DatabaseRoleOptions {
  api: KubeApi;
  stores: Pick<OperatorStores, "clusters" | "databaseRoles" | "secrets">;
  clock: Clock;
  context: Pick<BuildContext, "certificateDurationDays" | "expiringThresholdDays">;
}

/** How soon a pass that lost a race is repeated, in milliseconds. */
const conflictPauseMs = 100;

/** One pass over one DatabaseRole: its client certificate, and the version of its password Secret. */
export function createDatabaseRoleReconciler(options: DatabaseRoleOptions) {
  return async (key: string, signal: AbortSignal, { logger }: { logger: Logger }): Promise<ReconcileResult> => {
    const [namespace = "", name = ""] = key.split("/");
    const role = options.stores.databaseRoles.get({ namespace, name });
    if (!role || role.metadata.deletionTimestamp) return {};
    const { observed, secret, authority } = observe(options, role);
    const plan = planDatabaseRole(role, observed, new Date(options.clock.now()));
    try {
      await executeCertificate(options, role, plan.certificate, { secret, authority, signal });
      if (plan.certificate !== "leave") {
        logger.info("Client certificate of a role", {
          action: plan.certificate,
          secret: clientCertificateSecret(name),
        });
      }
      await report(options, { namespace, name }, plan.status, signal);
    } catch (error) {
      if (isKubeError(error, "notFound")) return {};
      if (isKubeError(error, "conflict", "alreadyExists")) return { requeueAfterMs: conflictPauseMs };
      throw error;
    }
    return plan.requeueAfterMs === undefined ? {} : { requeueAfterMs: plan.requeueAfterMs };
  };
}

function observe({ stores, clock, context }: DatabaseRoleOptions, role: DatabaseRole) {
  const namespace = role.metadata.namespace ?? "";
  const secretNamed = (name: string | undefined) => (name ? stores.secrets.get({ namespace, name }) : undefined);
  const cluster = stores.clusters.get({ namespace, name: role.spec.cluster.name ?? "" });
  const authorityName = cluster && secretNames(cluster).clientCa;
  const authority = secretNamed(authorityName);
  const secret = secretNamed(clientCertificateSecret(role.metadata.name ?? ""));
  const observed: ObservedRole = {
    passwordVersion: secretNamed(role.spec.passwordSecret?.name)?.metadata.resourceVersion,
    authority: authorityName ? { name: authorityName, found: inspectAuthority(authority) } : undefined,
    certificate: {
      isOurs: secret !== undefined && controllerOf(secret)?.uid === role.metadata.uid,
      found: inspectLeaf(secret, authority, "client", clock.now()),
    },
    expiringThresholdDays: context.expiringThresholdDays,
  };
  return { observed, secret, authority };
}

async function executeCertificate(
  { api, stores, clock, context }: DatabaseRoleOptions,
  role: DatabaseRole,
  action: RolePlan["certificate"],
  { secret, authority, signal }: { secret: Secret | undefined; authority: Secret | undefined; signal: AbortSignal },
): Promise<void> {
  if (action === "leave") return;
  const name = clientCertificateSecret(role.metadata.name ?? "");
  const key = { namespace: role.metadata.namespace ?? "", name };
  if (action === "delete") {
    const { uid } = secret?.metadata ?? {};
    await api.delete(resources.secrets, key, { signal, ...(uid ? { uid } : {}) });
    return;
  }
  const [certificate, privateKey] = ["ca.crt", "ca.key"].map((it) => authority && secretText(authority, it));
  if (!certificate || !privateKey) throw new Error(`the authority for secret ${key.namespace}/${name} is gone`);
  const leaf = { commonName: role.spec.name, usage: "client", dnsNames: [] } as const;
  const validity = { now: clock.now(), durationDays: context.certificateDurationDays };
  const ownKey = action === "renew" && secret ? secretText(secret, "tls.key") : undefined;
  const pair = ownKey
    ? { privateKey: ownKey, certificate: renewLeaf({ certificate, privateKey }, ownKey, leaf, validity) }
    : await createLeaf({ certificate, privateKey }, leaf, validity);
  const data = encodeData({ "tls.crt": pair.certificate, "tls.key": pair.privateKey });
  if (secret) {
    const body = { data, metadata: { resourceVersion: secret.metadata.resourceVersion } };
    stores.secrets.observeWrite(await api.patch(resources.secrets, key, { type: "merge", body }, { signal }));
    return;
  }
  const { name: owner = "", uid = "" } = role.metadata;
  const reference = { apiVersion: cnpgApiVersion, kind: "DatabaseRole", name: owner, uid };
  const created: Secret = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: {
      ...key,
      labels: managedByLabel,
      ownerReferences: [{ ...reference, controller: true, blockOwnerDeletion: true }],
    },
    type: "kubernetes.io/tls",
    data,
  };
  stores.secrets.observeWrite(await api.create(resources.secrets, created, { signal }));
}

/** Writes the operator's own fields and leaves those of the primary alone. */
async function report(
  { api, stores }: DatabaseRoleOptions,
  key: { namespace: string; name: string },
  fields: RolePlan["status"],
  signal: AbortSignal,
): Promise<void> {
  const mutate = (current: DatabaseRole): DatabaseRole => {
    const { conditions: _conditions, clientCertificate: _certificate, ...kept } = current.status ?? {};
    const wanted = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
    return { ...current, status: { ...kept, ...wanted } };
  };
  stores.databaseRoles.observeWrite(await patchStatus(api, resources.databaseRoles, key, mutate, { signal }));
}
