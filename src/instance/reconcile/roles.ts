import { roles } from "../../api/constants.ts";
import { quoteIdentifier } from "../../postgres/identifiers.ts";
import type { InstanceContext } from "../instance-context.ts";
import { withSession } from "../local-sql.ts";

/** Functions that pg_rewind calls on the source server, and what lets a standby's backup end in time. */
const standbyFunctions = [
  "pg_catalog.pg_switch_wal()",
  "pg_catalog.pg_ls_dir(text, boolean, boolean)",
  "pg_catalog.pg_stat_file(text, boolean)",
  "pg_catalog.pg_read_binary_file(text)",
  "pg_catalog.pg_read_binary_file(text, bigint, bigint, boolean)",
];

const roleFacts = `
  SELECT rolcanlogin, rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls, rolinherit,
         rolpassword IS NOT NULL AS has_password,
         EXISTS (SELECT 1 FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid
                  WHERE m.member = a.oid AND g.rolname = 'pg_monitor') AS monitors
    FROM pg_authid a WHERE rolname = $1`;

/** Makes sure that standbys can connect and be rewound. */
export async function ensureReplicationRole(context: InstanceContext, signal: AbortSignal): Promise<void> {
  const role = quoteIdentifier(roles.replication);
  await withSession(
    context,
    "postgres",
    async (session) => {
      const [known] = await session.query(roleFacts, [roles.replication]);
      await session.query("BEGIN");
      if (!known) {
        await session.query(`CREATE ROLE ${role} LOGIN REPLICATION`);
        await session.query(
          `COMMENT ON ROLE ${role} IS 'Special user for streaming replication created by CloudNativePG'`,
        );
      } else if (known["rolcanlogin"] !== true || known["rolreplication"] !== true) {
        await session.query(`ALTER ROLE ${role} LOGIN REPLICATION`);
      }
      for (const name of standbyFunctions) await session.query(`GRANT EXECUTE ON FUNCTION ${name} TO ${role}`);
      await session.query("COMMIT");
    },
    { signal },
  );
}

/** Makes sure that the metrics exporter has a role of its own with no more rights than it needs. */
export async function ensureMetricsRole(context: InstanceContext, signal: AbortSignal): Promise<boolean> {
  const role = quoteIdentifier(roles.metrics);
  return withSession(
    context,
    "postgres",
    async (session) => {
      const [known] = await session.query(roleFacts, [roles.metrics]);
      const attributes = "LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS INHERIT PASSWORD NULL";
      const good =
        known &&
        known["rolcanlogin"] === true &&
        known["rolinherit"] === true &&
        !known["rolsuper"] &&
        !known["rolcreatedb"] &&
        !known["rolcreaterole"] &&
        !known["rolreplication"] &&
        !known["rolbypassrls"] &&
        !known["has_password"];
      if (good && known["monitors"] === true) return false;
      await session.query("BEGIN");
      if (!known) await session.query(`CREATE ROLE ${role} ${attributes}`);
      else if (!good) await session.query(`ALTER ROLE ${role} ${attributes}`);
      await session.query(`GRANT pg_monitor TO ${role}`);
      await session.query("COMMIT");
      return true;
    },
    { signal },
  );
}
