import type { Database } from "../../api/generated/database.ts";
import type { SqlSession } from "../../ports/sql-session.ts";
import { quoteIdentifier, quoteLiteral } from "../../postgres/identifiers.ts";
import { applyServer, applyWrapper } from "./foreign-objects.ts";
import { errorText } from "./server-message.ts";

type Spec = Database["spec"];

interface ItemResult {
  name: string;
  applied: boolean;
  message?: string;
}

interface ContentsStatus {
  schemas?: ItemResult[] | undefined;
  extensions?: ItemResult[] | undefined;
  fdws?: ItemResult[] | undefined;
  servers?: ItemResult[] | undefined;
}

/** The status of a database of which no contents are declared: what was said of former ones goes. */
export const noContents: ContentsStatus = {
  schemas: undefined,
  extensions: undefined,
  fdws: undefined,
  servers: undefined,
};

/** Brings what a database contains in line; an item that fails does not hold up the others. */
export async function applyDatabaseContents(
  session: SqlSession,
  spec: Spec,
): Promise<{ status: ContentsStatus; failed: boolean }> {
  const lists = [
    list("schemas", spec.schemas, (item) => applySchema(session, item)),
    list("extensions", spec.extensions, (item) => applyExtension(session, item)),
    list("fdws", spec.fdws, (item) => applyWrapper(session, item)),
    list("servers", spec.servers, (item) => applyServer(session, item)),
  ];
  for (const { work } of lists) await work((ensure) => ensure !== "absent");
  // What goes may lie in something else that goes, or go only with it, as the wrapper of an extension does.
  const leaving = lists.toReversed();
  for (const { work } of [...leaving, ...leaving]) await work((ensure, applied) => ensure === "absent" && !applied);
  const told = lists.flatMap(({ name, results }) => (results?.length ? [[name, results]] : []));
  const status: ContentsStatus = { ...noContents, ...Object.fromEntries(told) };
  return { status, failed: lists.some(({ results }) => results?.some(({ applied }) => !applied)) };
}

function list<T extends { name: string; ensure?: "present" | "absent" }>(
  name: keyof ContentsStatus,
  items: readonly T[] | undefined,
  apply: (item: T) => Promise<void>,
) {
  const results = items?.map((item): ItemResult => ({ name: item.name, applied: false }));
  const work = async (concerns: (ensure: "present" | "absent" | undefined, applied: boolean) => boolean) => {
    for (const [index, item] of (items ?? []).entries()) {
      if (!results || !concerns(item.ensure, results[index]?.applied === true)) continue;
      results[index] = await apply(item).then(
        () => ({ name: item.name, applied: true }),
        (error: unknown) => ({
          name: item.name,
          applied: false,
          message: errorText(error),
        }),
      );
    }
  };
  return { name, results, work };
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
