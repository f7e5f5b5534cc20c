// Roles of the server that a monolith import reads from (reference: declarative objects §5).
import { roles as ownRoles } from "../../api/constants.ts";
import type { SqlSession } from "../../ports/sql-session.ts";
import { quoteIdentifier, quoteLiteral } from "../../postgres/identifiers.ts";
import type { InstanceContext } from "../instance-context.ts";
import { connectLocally } from "./post-init.ts";
import { runQuery, type SourceConnection } from "./source-connection.ts";

/** A role as the source has it, as far as it is copied. */
export interface SourceRole {
  rolname: string;
  rolinherit: boolean;
  rolcreaterole: boolean;
  rolcreatedb: boolean;
  rolcanlogin: boolean;
  rolconnlimit: number;
  rolpassword: string | null;
  rolvaliduntil: string | null;
  rolbypassrls: boolean;
}

interface Membership {
  role: string;
  member: string;
  grantor: string | null;
  admin: boolean;
}

/** Creates a role, superusers as ordinary ones and without the right to replicate. */
export function createRoleStatement(role: SourceRole): string {
  const option = (word: string, on: boolean) => (on ? word : `NO${word}`);
  return [
    `CREATE ROLE ${quoteIdentifier(role.rolname)} WITH`,
    option("LOGIN", role.rolcanlogin),
    option("INHERIT", role.rolinherit),
    option("CREATEROLE", role.rolcreaterole),
    option("CREATEDB", role.rolcreatedb),
    option("BYPASSRLS", role.rolbypassrls),
    `CONNECTION LIMIT ${role.rolconnlimit}`,
    ...(role.rolpassword === null ? [] : [`PASSWORD ${quoteLiteral(role.rolpassword)}`]),
    ...(role.rolvaliduntil === null ? [] : [`VALID UNTIL ${quoteLiteral(role.rolvaliduntil)}`]),
  ].join(" ");
}

/** Copies the listed roles, `*` for all; a role that cannot be made is told in the log and left out. */
export async function importRoles(
  context: InstanceContext,
  source: SourceConnection,
  wanted: readonly string[],
  owner: string | undefined,
): Promise<void> {
  const { logger } = context;
  const kept = new Set<string>([...Object.values(ownRoles), ...(owner ? [owner] : [])]);
  const all = await readRoles(context, source);
  const chosen = all.filter(({ rolname }) => !kept.has(rolname) && (wanted.includes("*") || wanted.includes(rolname)));
  const names = new Set(chosen.map(({ rolname }) => rolname));
  const session = await connectLocally(context, "postgres");
  try {
    // No hash may come into the log.
    await session.query("SET log_statement = 'none'; SET log_min_error_statement = 'PANIC'");
    for (const role of chosen) {
      const made = await attempt(context, session, createRoleStatement(role), { role: role.rolname });
      if (made) logger.info("Imported role", { role: role.rolname });
    }
    for (const membership of await readMemberships(context, source)) {
      if (!names.has(membership.role) || !names.has(membership.member)) continue;
      await attempt(context, session, grantStatement(membership, names), { ...membership });
    }
  } finally {
    await session.close();
  }
}

function grantStatement({ role, member, grantor, admin }: Membership, names: ReadonlySet<string>): string {
  const by = grantor !== null && names.has(grantor) ? ` GRANTED BY ${quoteIdentifier(grantor)}` : "";
  return `GRANT ${quoteIdentifier(role)} TO ${quoteIdentifier(member)}${admin ? " WITH ADMIN OPTION" : ""}${by}`;
}

async function attempt(
  context: InstanceContext,
  session: SqlSession,
  statement: string,
  what: Record<string, unknown>,
): Promise<boolean> {
  try {
    await session.query(statement);
    return true;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    context.logger.error("Could not import a role or its membership", { ...what, reason });
    return false;
  }
}

async function readRoles(context: InstanceContext, source: SourceConnection): Promise<SourceRole[]> {
  const query =
    "SELECT COALESCE(json_agg(r ORDER BY rolname), '[]') FROM (SELECT rolname, rolinherit, rolcreaterole, rolcreatedb, " +
    "rolcanlogin, rolconnlimit, rolpassword, rolvaliduntil::text, rolbypassrls FROM pg_authid WHERE oid >= 16384) r";
  return JSON.parse(await runQuery(context, source, query)) as SourceRole[];
}

async function readMemberships(context: InstanceContext, source: SourceConnection): Promise<Membership[]> {
  const query =
    "SELECT COALESCE(json_agg(m), '[]') FROM (SELECT ur.rolname AS role, um.rolname AS member, ug.rolname AS grantor, " +
    "a.admin_option AS admin FROM pg_auth_members a JOIN pg_authid ur ON ur.oid = a.roleid " +
    "JOIN pg_authid um ON um.oid = a.member LEFT JOIN pg_authid ug ON ug.oid = a.grantor " +
    "WHERE ur.oid >= 16384 AND um.oid >= 16384 ORDER BY 1, 2) m";
  return JSON.parse(await runQuery(context, source, query)) as Membership[];
}
