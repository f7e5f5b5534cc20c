import type { ActualRole } from "../../plan/instance/managed-roles.ts";
import type { SqlSession } from "../../ports/sql-session.ts";

const rolesSql = `SELECT r.rolname AS name, r.rolbypassrls AS bypassrls, r.rolcreatedb AS createdb,
    r.rolcreaterole AS createrole, r.rolinherit AS inherit, r.rolcanlogin AS login, r.rolreplication AS replication,
    r.rolsuper AS superuser, r.rolconnlimit::text AS connlimit, r.rolpassword IS NOT NULL AS haspassword,
    CASE WHEN pg_catalog.isfinite(r.rolvaliduntil)
      THEN (EXTRACT(epoch FROM r.rolvaliduntil) * 1000)::bigint::text END AS validuntil,
    r.xmin::text AS xmin, COALESCE(pg_catalog.shobj_description(r.oid, 'pg_authid'), '') AS comment,
    COALESCE((SELECT pg_catalog.json_agg(g.rolname ORDER BY g.rolname) FROM pg_catalog.pg_auth_members m
      JOIN pg_catalog.pg_authid g ON g.oid = m.roleid WHERE m.member = r.oid), '[]')::text AS inroles
  FROM pg_catalog.pg_authid r WHERE r.rolname NOT LIKE 'pg\\_%' ORDER BY r.rolname`;

/** Reads every role but PostgreSQL's own. */
export async function readRoles(session: SqlSession): Promise<ActualRole[]> {
  const rows = await session.query(rolesSql);
  return rows.map((row) => ({
    name: String(row["name"]),
    bypassrls: row["bypassrls"] === true,
    createdb: row["createdb"] === true,
    createrole: row["createrole"] === true,
    inherit: row["inherit"] === true,
    login: row["login"] === true,
    replication: row["replication"] === true,
    superuser: row["superuser"] === true,
    connectionLimit: Number(row["connlimit"]),
    hasPassword: row["haspassword"] === true,
    comment: String(row["comment"]),
    inRoles: JSON.parse(String(row["inroles"])) as string[],
    transactionId: Number(row["xmin"]),
    ...(row["validuntil"] === null ? {} : { validUntilMs: Number(row["validuntil"]) }),
  }));
}
