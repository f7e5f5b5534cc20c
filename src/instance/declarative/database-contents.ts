import type { Database } from "../../api/generated/database.ts";
import type { SqlSession } from "../../ports/sql-session.ts";
import { quoteIdentifier, quoteLiteral } from "../../postgres/identifiers.ts";

type Spec = Database["spec"];

interface ItemResult {
  name: string;
  applied: boolean;
  message?: string;
}

/** Brings schemas and extensions of a database in line; an item that fails does not hold up the others. */
export async function applyDatabaseContents(
  session: SqlSession,
  spec: Spec,
): Promise<{
  status: { schemas?: ItemResult[]; extensions?: ItemResult[]; fdws?: ItemResult[]; servers?: ItemResult[] };
  failed: boolean;
}> {
  const each = async <T extends { name: string }>(items: readonly T[], apply: (item: T) => Promise<void>) => {
    const results: ItemResult[] = [];
    for (const item of items) {
      try {
        await apply(item);
        results.push({ name: item.name, applied: true });
      } catch (error) {
        results.push({
          name: item.name,
          applied: false,
          message: error instanceof Error ? error.message : String(error),
        });
      }
    }
    return results;
  };
  // Said plainly rather than passed over: nobody may take these for done.
  const refuse = () => Promise.reject(new Error("foreign data wrappers and servers are not supported yet"));
  const status = {
    ...(spec.schemas ? { schemas: await each(spec.schemas, (item) => applySchema(session, item)) } : {}),
    ...(spec.extensions ? { extensions: await each(spec.extensions, (item) => applyExtension(session, item)) } : {}),
    ...(spec.fdws ? { fdws: await each(spec.fdws, refuse) } : {}),
    ...(spec.servers ? { servers: await each(spec.servers, refuse) } : {}),
  };
  return { status, failed: Object.values(status).some((list) => list.some(({ applied }) => !applied)) };
}

async function applySchema(session: SqlSession, item: NonNullable<Spec["schemas"]>[number]): Promise<void> {
  const name = quoteIdentifier(item.name);
  if (item.ensure === "absent") {
    await session.query(`DROP SCHEMA IF EXISTS ${name}`);
    return;
  }
  const [known] = await session.query(
    "SELECT pg_catalog.pg_get_userbyid(nspowner) AS owner FROM pg_catalog.pg_namespace WHERE nspname = $1",
    [item.name],
  );
  if (!known) {
    await session.query(`CREATE SCHEMA ${name}${item.owner ? ` AUTHORIZATION ${quoteIdentifier(item.owner)}` : ""}`);
  } else if (item.owner && known["owner"] !== item.owner) {
    await session.query(`ALTER SCHEMA ${name} OWNER TO ${quoteIdentifier(item.owner)}`);
  }
}

async function applyExtension(session: SqlSession, item: NonNullable<Spec["extensions"]>[number]): Promise<void> {
  const name = quoteIdentifier(item.name);
  if (item.ensure === "absent") {
    await session.query(`DROP EXTENSION IF EXISTS ${name}`);
    return;
  }
  const [known] = await session.query(
    `SELECT e.extversion AS version, n.nspname AS schema FROM pg_catalog.pg_extension e
     JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = $1`,
    [item.name],
  );
  if (!known) {
    const version = item.version ? ` VERSION ${quoteLiteral(item.version)}` : "";
    const schema = item.schema ? ` SCHEMA ${quoteIdentifier(item.schema)}` : "";
    // The fixed search path would put the extension's objects into pg_catalog.
    await session.query(`SET search_path TO "$user", public`);
    try {
      await session.query(`CREATE EXTENSION ${name}${version}${schema}`);
    } finally {
      await session.query("RESET search_path");
    }
    return;
  }
  if (item.schema && known["schema"] !== item.schema) {
    await session.query(`ALTER EXTENSION ${name} SET SCHEMA ${quoteIdentifier(item.schema)}`);
  }
  if (item.version && known["version"] !== item.version) {
    await session.query(`ALTER EXTENSION ${name} UPDATE TO ${quoteLiteral(item.version)}`);
  }
}
