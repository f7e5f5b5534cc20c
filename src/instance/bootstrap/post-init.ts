import { roles } from "../../api/constants.ts";
import type { SqlSession } from "../../ports/sql-session.ts";
import { quoteIdentifier } from "../../postgres/identifiers.ts";
import { splitShellWords } from "../../postgres/shell-words.ts";
import type { InstanceContext } from "../instance-context.ts";

/** What the user wants to be run in a new cluster. */
export interface PostInitOptions {
  appDatabase: string | undefined;
  appUser: string | undefined;
  /** Shell-quoted lists of statements. */
  sql: string | undefined;
  templateSql: string | undefined;
  applicationSql: string | undefined;
  /** Folders with `N.sql` files, run in name order. */
  sqlFolder: string | undefined;
  templateSqlFolder: string | undefined;
  applicationSqlFolder: string | undefined;
}

/** A session of the superuser over the socket. */
export function connectLocally(context: InstanceContext, database: string): Promise<SqlSession> {
  return context.sql.connect({
    host: context.paths.socketDir,
    port: context.settings.postgresPort,
    user: roles.superuser,
    database,
    applicationName: "cnpg-instance-manager",
  });
}

/** Runs statements and files in one database, as the user would: with the ordinary search path. */
export async function runBatch(
  context: InstanceContext,
  database: string,
  statements: readonly string[],
  folder: string | undefined,
): Promise<void> {
  const names = folder ? (await context.files.list(folder)).filter((name) => name.endsWith(".sql")) : [];
  if (statements.length === 0 && names.length === 0) return;
  const session = await connectLocally(context, database);
  try {
    await session.query(`SET search_path TO "$user", public`);
    for (const statement of statements) {
      context.logger.debug("Executing query", { sqlQuery: statement, database });
      await session.query(statement);
    }
    for (const name of names) {
      const text = (await context.files.read(`${folder}/${name}`)) ?? "";
      context.logger.info("Executing a file of SQL statements", { file: name, database });
      await session.query(text);
    }
  } finally {
    await session.close();
  }
}

async function exists(session: SqlSession, query: string, name: string): Promise<boolean> {
  return (await session.query(query, [name])).length > 0;
}

/** Fills a new cluster: the application's role and database and the user's own statements (reference: instance manager §9.2). */
export async function runPostInit(context: InstanceContext, options: PostInitOptions): Promise<void> {
  const { logger, files, paths } = context;
  logger.info("Configuring new PostgreSQL instance");
  const session = await connectLocally(context, "postgres");
  let createDatabase = false;
  try {
    const { appUser, appDatabase } = options;
    if (appUser && !(await exists(session, "SELECT 1 FROM pg_roles WHERE rolname = $1", appUser))) {
      await session.query(`CREATE ROLE ${quoteIdentifier(appUser)} LOGIN`);
    }
    logger.info("Executing post-init SQL instructions");
    await runBatch(context, "postgres", splitShellWords(options.sql ?? ""), options.sqlFolder);
    logger.info("Executing post-init template SQL instructions");
    await runBatch(context, "template1", splitShellWords(options.templateSql ?? ""), options.templateSqlFolder);
    await files.writeAtomic(paths.checkEmptyArchive, "", 0o600);
    if (appUser && appDatabase) {
      createDatabase = !(await exists(session, "SELECT 1 FROM pg_database WHERE datname = $1", appDatabase));
      if (createDatabase) {
        await session.query(`CREATE DATABASE ${quoteIdentifier(appDatabase)} OWNER ${quoteIdentifier(appUser)}`);
      }
    }
  } finally {
    await session.close();
  }
  if (!createDatabase || !options.appDatabase) return;
  logger.info("executing Application instructions");
  await runBatch(
    context,
    options.appDatabase,
    splitShellWords(options.applicationSql ?? ""),
    options.applicationSqlFolder,
  );
}
