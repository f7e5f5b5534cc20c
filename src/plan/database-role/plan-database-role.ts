// The operator's half of a DatabaseRole (reference: declarative objects §1.4): the rest is the primary's.
import { clientCertificateSecret, passwordSecretChange } from "../../api/database-role.ts";
import type { DatabaseRole } from "../../api/generated/databaserole.ts";
import { checkExpiry, type ObservedCertificate } from "../../build/certificates.ts";
import { formatSeconds } from "../cluster/timestamps.ts";

type Status = NonNullable<DatabaseRole["status"]>;

export interface ObservedRole {
  /** Version of the Secret with the password; `undefined` when there is none. */
  passwordVersion: string | undefined;
  /** Name and content of the authority of the cluster's clients; `undefined` without a cluster. */
  authority: { name: string; found: ObservedCertificate } | undefined;
  /** The Secret that has the certificate's name: whose it is and what it holds. */
  certificate: { isOurs: boolean; found: ObservedCertificate };
  expiringThresholdDays: number;
}

export interface RolePlan {
  /** Fields of the status that the operator writes; `undefined` takes one out. */
  status: { [Field in "conditions" | "clientCertificate"]: Status[Field] | undefined };
  /** After a certificate was written the next pass tells of it, from what it really says. */
  certificate: "leave" | "create" | "renew" | "replace" | "delete";
  requeueAfterMs?: number;
}

/** Certificates are looked at once an hour, in milliseconds. */
const certificatePauseMs = 3_600_000;

/** Decides what becomes of a DatabaseRole's certificate, and what the primary is told of its password. */
export function planDatabaseRole(role: DatabaseRole, observed: ObservedRole, now: Date): RolePlan {
  const conditions = withPasswordVersion(role, observed.passwordVersion, now);
  const certificate = planCertificate(role, observed, now);
  const enabled = isCertificateEnabled(role);
  return {
    status: { conditions, clientCertificate: certificate.status },
    certificate: certificate.action,
    ...(enabled ? { requeueAfterMs: certificatePauseMs } : {}),
  };
}

/** Whether the role is to have a client certificate: a section that says nothing more asks for one. */
export function isCertificateEnabled({ spec }: DatabaseRole): boolean {
  return spec.clientCertificate !== undefined && spec.clientCertificate.enabled !== false;
}

function withPasswordVersion(
  role: DatabaseRole,
  version: string | undefined,
  now: Date,
): Status["conditions"] | undefined {
  const conditions = role.status?.conditions ?? [];
  const known = conditions.find(({ type }) => type === passwordSecretChange);
  if (version === undefined || known?.message === version) return role.status?.conditions;
  const condition = {
    type: passwordSecretChange,
    status: "True" as const,
    reason: "ChangeDetected",
    message: version,
    lastTransitionTime: known?.lastTransitionTime ?? formatSeconds(now),
  };
  return [...conditions.filter(({ type }) => type !== passwordSecretChange), condition];
}

interface CertificateDecision {
  action: RolePlan["certificate"];
  status: Status["clientCertificate"] | undefined;
}

function planCertificate(role: DatabaseRole, observed: ObservedRole, now: Date): CertificateDecision {
  const { isOurs, found } = observed.certificate;
  const secret = JSON.stringify(clientCertificateSecret(role.metadata.name ?? ""));
  const known = role.status?.clientCertificate;
  const told = (message: string): CertificateDecision => ({ action: "leave", status: { message } });
  if (!isCertificateEnabled(role)) {
    if (found.kind === "absent") return { action: "leave", status: undefined };
    if (isOurs) return { action: "delete", status: undefined };
    // A Secret of that name is nobody's business where there never was a certificate.
    if (!known) return { action: "leave", status: undefined };
    return told(`Secret ${secret} is not owned by this DatabaseRole and will not be deleted automatically`);
  }
  if (found.kind !== "absent" && !isOurs) {
    return told(`Secret ${secret} already exists and is not owned by this DatabaseRole`);
  }
  const { authority } = observed;
  if (!authority || authority.found.kind === "absent") return { action: "leave", status: known };
  if (authority.found.kind === "unreadable") {
    return told(`client CA secret ${JSON.stringify(authority.name)} cannot be used: ${authority.found.reason}`);
  }
  if (!authority.found.hasKey) {
    return told(
      `client CA secret ${JSON.stringify(authority.name)} has no private key; bring-your-own-CA clusters require manual certificate management`,
    );
  }
  if (found.kind === "absent") return { action: "create", status: known };
  if (found.kind === "unreadable") return { action: "replace", status: known };
  const isDue = found.problem ?? checkExpiry(found, now.getTime(), observed.expiringThresholdDays);
  if (isDue) return { action: "renew", status: known };
  return { action: "leave", status: { expiration: formatSeconds(new Date(found.notAfter)) } };
}
