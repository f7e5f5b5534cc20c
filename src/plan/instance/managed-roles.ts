// Evaluation of spec.managed.roles against what PostgreSQL has (reference: declarative objects §2.3).
import type { Cluster } from "../../api/generated/cluster.ts";
import type { RoleAttributes, RoleOptions, RolePassword } from "../../postgres/role-sql.ts";

/** An entry of `spec.managed.roles`. */
export type WantedRole = NonNullable<NonNullable<Cluster["spec"]["managed"]>["roles"]>[number];

/** A role as PostgreSQL has it. */
export interface ActualRole extends RoleAttributes {
  name: string;
  comment: string;
  inRoles: readonly string[];
  hasPassword: boolean;
  /** Milliseconds since 1970; absent when the password never expires. */
  validUntilMs?: number;
  /** xmin of the row: it moves whenever somebody alters the role. */
  transactionId: number;
}

/** What was last applied with a role's password. */
export interface PasswordState {
  transactionID?: number;
  resourceVersion?: string;
}

export type RoleAction = "CREATE" | "DELETE" | "UPDATE" | "SET_COMMENT" | "UPDATE_MEMBERSHIPS";

export interface ManagedRolesView {
  wanted: readonly WantedRole[];
  actual: readonly ActualRole[];
  /** Versions of the password Secrets that could be read. */
  secretVersions: ReadonlyMap<string, string>;
  passwordStatus: Readonly<Record<string, PasswordState>>;
}

export interface ManagedRolesPlan {
  actions: { kind: RoleAction; role: WantedRole; actual?: ActualRole }[];
  byStatus: Record<string, string[]>;
}

/** Names that the operator keeps for itself. */
export function isReservedRoleName(name: string): boolean {
  return name === "postgres" || name === "streaming_replica" || name.startsWith("pg_") || name.startsWith("cnpg_");
}

function wantedAttributes(role: WantedRole): RoleAttributes {
  return {
    bypassrls: role.bypassrls ?? false,
    createdb: role.createdb ?? false,
    createrole: role.createrole ?? false,
    inherit: role.inherit ?? true,
    login: role.login ?? false,
    replication: role.replication ?? false,
    superuser: role.superuser ?? false,
    connectionLimit: role.connectionLimit ?? -1,
  };
}

/** Options that make a role what is wanted; without a password that stays as it is. `actual` is the role that is there. */
export function wantedOptions(
  role: WantedRole,
  actual: Pick<ActualRole, "validUntilMs"> | undefined,
  password: RolePassword | undefined,
): RoleOptions {
  // Only a role that expires today has something to take back.
  const validUntil = role.validUntil ?? (actual?.validUntilMs === undefined ? undefined : "infinity");
  return {
    attributes: wantedAttributes(role),
    ...(password ? { password } : {}),
    ...(validUntil === undefined ? {} : { validUntil }),
  };
}

/** Decides one action for each role that needs one, and how every role is reported. */
export function planManagedRoles(view: ManagedRolesView): ManagedRolesPlan {
  const actual = new Map(view.actual.map((role) => [role.name, role]));
  const wantedNames = new Set(view.wanted.map((role) => role.name));
  const plan: ManagedRolesPlan = { actions: [], byStatus: {} };
  const report = (status: string, name: string) => {
    plan.byStatus[status] = [...(plan.byStatus[status] ?? []), name].sort();
  };
  for (const role of view.wanted) {
    if (isReservedRoleName(role.name)) {
      report("reserved", role.name);
      continue;
    }
    const known = actual.get(role.name);
    const kind = decide(role, known, view);
    report(kind ? "pending-reconciliation" : "reconciled", role.name);
    if (kind) plan.actions.push({ kind, role, ...(known ? { actual: known } : {}) });
  }
  for (const { name } of view.actual) {
    if (!wantedNames.has(name)) report(isReservedRoleName(name) ? "reserved" : "not-managed", name);
  }
  return plan;
}

function decide(role: WantedRole, actual: ActualRole | undefined, view: ManagedRolesView): RoleAction | undefined {
  const absent = role.ensure === "absent";
  if (!actual) return absent ? undefined : "CREATE";
  if (absent) return "DELETE";
  if (attributesDiffer(role, actual) || passwordDiffers(role, actual, view)) return "UPDATE";
  if ((role.comment ?? "") !== actual.comment) return "SET_COMMENT";
  const wanted = [...new Set(role.inRoles ?? [])].sort();
  if (wanted.join("\0") !== [...actual.inRoles].sort().join("\0")) return "UPDATE_MEMBERSHIPS";
  return undefined;
}

function attributesDiffer(role: WantedRole, actual: ActualRole): boolean {
  const wanted = wantedAttributes(role);
  if ((Object.keys(wanted) as (keyof RoleAttributes)[]).some((name) => wanted[name] !== actual[name])) return true;
  const validUntil = role.validUntil ? Date.parse(role.validUntil) : undefined;
  return validUntil !== actual.validUntilMs;
}

function passwordDiffers(role: WantedRole, actual: ActualRole, view: ManagedRolesView): boolean {
  // The statement that is due then names the contradiction.
  if (role.disablePassword) return actual.hasPassword || role.passwordSecret !== undefined;
  if (!role.passwordSecret) return false;
  const version = view.secretVersions.get(role.passwordSecret.name);
  const state = view.passwordStatus[role.name];
  return (
    version === undefined || version !== state?.resourceVersion || actual.transactionId !== (state.transactionID ?? 0)
  );
}
