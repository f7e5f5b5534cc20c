import type { SqlSession } from "../../ports/sql-session.ts";
import {
  alterServer,
  alterWrapper,
  createServer,
  createWrapper,
  type ForeignStep,
  type WantedServer,
  type WantedWrapper,
} from "../../postgres/foreign-sql.ts";
import { quoteIdentifier } from "../../postgres/identifiers.ts";
import { step } from "./step.ts";

const optionsOf = (column: string) =>
  `COALESCE((SELECT pg_catalog.json_object_agg(option_name, COALESCE(option_value, ''))
     FROM pg_catalog.pg_options_to_table(${column})), '{}')::text AS options`;

/** Brings one foreign data wrapper in line. */
export async function applyWrapper(session: SqlSession, item: WantedWrapper): Promise<void> {
  if (item.ensure === "absent") {
    await session.query(`DROP FOREIGN DATA WRAPPER IF EXISTS ${quoteIdentifier(item.name)}`);
    return;
  }
  const [known] = await session.query(
    `SELECT pg_catalog.pg_get_userbyid(fdwowner) AS owner, fdwhandler::pg_catalog.regproc::text AS handler,
       fdwvalidator::pg_catalog.regproc::text AS validator, ${optionsOf("fdwoptions")}
     FROM pg_catalog.pg_foreign_data_wrapper WHERE fdwname = $1`,
    [item.name],
  );
  const text = (column: string) => String(known?.[column]);
  const wanted = await withPossibleOwner(session, item);
  await run(
    session,
    known
      ? alterWrapper(wanted, {
          owner: text("owner"),
          handler: text("handler"),
          validator: text("validator"),
          options: JSON.parse(text("options")) as Record<string, string>,
        })
      : createWrapper(wanted),
  );
}

/** Only superusers can own a wrapper; a manifest that names another role gets its wrapper, with the owner left as it is. */
async function withPossibleOwner(session: SqlSession, item: WantedWrapper): Promise<WantedWrapper> {
  if (!item.owner) return item;
  const [role] = await session.query("SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = $1", [item.owner]);
  if (role?.["rolsuper"] !== false) return item;
  const { owner: _owner, ...rest } = item;
  return rest;
}

/** Brings one foreign server in line. */
export async function applyServer(session: SqlSession, item: WantedServer): Promise<void> {
  if (item.ensure === "absent") {
    await session.query(`DROP SERVER IF EXISTS ${quoteIdentifier(item.name)}`);
    return;
  }
  const [known] = await session.query(
    `SELECT w.fdwname AS wrapper, ${optionsOf("s.srvoptions")} FROM pg_catalog.pg_foreign_server s
     JOIN pg_catalog.pg_foreign_data_wrapper w ON w.oid = s.srvfdw WHERE s.srvname = $1`,
    [item.name],
  );
  if (known && known["wrapper"] !== item.fdw) {
    throw new Error(
      `server ${JSON.stringify(item.name)} uses the wrapper ${JSON.stringify(known["wrapper"])}, and PostgreSQL cannot change that: drop the server first`,
    );
  }
  const options = JSON.parse(String(known?.["options"] ?? "{}")) as Record<string, string>;
  await run(session, known ? alterServer(item, options) : createServer(item));
}

async function run(session: SqlSession, steps: readonly ForeignStep[]): Promise<void> {
  for (const { sql, what } of steps) {
    if (what === undefined) await session.query(sql);
    else await step(what, () => session.query(sql));
  }
}
