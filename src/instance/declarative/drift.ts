// How declared objects are looked at again: what they stand for may be changed, or lost with a former primary.
import type { Database } from "../../api/generated/database.ts";
import type { DatabaseRole } from "../../api/generated/databaserole.ts";
import {
  type ContentFact,
  findContentDrift,
  findDatabaseDrift,
  hasContents,
} from "../../plan/instance/declared-drift.ts";
import { planManagedRoles } from "../../plan/instance/managed-roles.ts";
import { type ApplyDeps, inDatabase } from "./declared-kind.ts";
import { readRoles } from "./role-rows.ts";

const databaseSql = `SELECT pg_catalog.pg_get_userbyid(d.datdba)::text AS owner, d.datallowconn AS connections,
    d.datconnlimit AS connection_limit, d.datistemplate AS template, t.spcname::text AS tablespace
  FROM pg_catalog.pg_database d JOIN pg_catalog.pg_tablespace t ON t.oid = d.dattablespace WHERE d.datname = $1`;

/** Without the owners of wrappers: what a manifest names there need not be a role that can own one. */
const contentsSql = `
  SELECT 'schemas' AS list, nspname::text AS name, pg_catalog.pg_get_userbyid(nspowner)::text AS owner,
         NULL AS version, NULL AS schema FROM pg_catalog.pg_namespace
  UNION ALL SELECT 'extensions', e.extname::text, NULL, e.extversion, n.nspname::text
    FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace
  UNION ALL SELECT 'fdws', fdwname::text, NULL, NULL, NULL
    FROM pg_catalog.pg_foreign_data_wrapper
  UNION ALL SELECT 'servers', srvname::text, pg_catalog.pg_get_userbyid(srvowner)::text, NULL, NULL
    FROM pg_catalog.pg_foreign_server`;

/** What a Database stands for and PostgreSQL does not have, in words. */
export async function findDriftOfDatabase({ spec }: Database, deps: ApplyDeps): Promise<string[]> {
  const [row] = await inDatabase(deps, "postgres", (session) => session.query(databaseSql, [spec.name]));
  const drift = findDatabaseDrift(
    spec,
    row && {
      owner: String(row["owner"]),
      allowConnections: row["connections"] === true,
      connectionLimit: Number(row["connection_limit"]),
      isTemplate: row["template"] === true,
      tablespace: String(row["tablespace"]),
    },
  );
  if (!row || drift.length > 0 || spec.ensure === "absent" || !hasContents(spec)) return drift;
  const rows = await inDatabase(deps, spec.name, (session) => session.query(contentsSql));
  const text = (value: unknown) => (typeof value === "string" ? value : undefined);
  const facts = rows.map(({ list, name, owner, version, schema }): ContentFact => {
    const [known, place, whose] = [text(version), text(schema), text(owner)];
    return {
      list: list as ContentFact["list"],
      name: String(name),
      ...(whose === undefined ? {} : { owner: whose }),
      ...(known === undefined ? {} : { version: known }),
      ...(place === undefined ? {} : { schema: place }),
    };
  });
  return findContentDrift(spec, facts);
}

/** The same of a DatabaseRole; its password cannot be compared, only replaced. */
export async function findDriftOfRole({ spec }: DatabaseRole, deps: ApplyDeps): Promise<string[]> {
  const actual = await inDatabase(deps, "postgres", readRoles);
  const { passwordSecret: _secret, disablePassword: _none, ...wanted } = spec;
  const { actions } = planManagedRoles({ wanted: [wanted], actual, secretVersions: new Map(), passwordStatus: {} });
  return actions.map(({ kind }) => `role ${JSON.stringify(spec.name)} needs ${kind}`);
}

/** The same of what only is there or is not: a publication, a subscription. */
export async function findMissing(
  what: string,
  { spec }: { spec: { name: string; dbname: string } },
  sql: string,
  deps: ApplyDeps,
): Promise<string[]> {
  const rows = await inDatabase(deps, spec.dbname, (session) => session.query(sql, [spec.name]));
  return rows.length > 0 ? [] : [`${what} ${JSON.stringify(spec.name)} is gone`];
}
