// Filling a new cluster from databases of a server that runs elsewhere (reference: declarative objects §5).
import type { Cluster } from "../../api/generated/cluster.ts";
import { dumpedExtensions } from "../../postgres/dump-contents.ts";
import { quoteIdentifier } from "../../postgres/identifiers.ts";
import type { InstanceContext } from "../instance-context.ts";
import { importRoles } from "./import-roles.ts";
import { connectLocally, runBatch } from "./post-init.ts";
import { runTool } from "./run-tool.ts";
import { openSource, runQuery, type SourceConnection, waitForSource } from "./source-connection.ts";

type Initdb = NonNullable<NonNullable<Cluster["spec"]["bootstrap"]>["initdb"]>;
export type ImportSection = NonNullable<Initdb["import"]>;

const sections = ["pre-data", "data", "post-data"] as const;
type Section = (typeof sections)[number];

/** Sections that are carried over: all, or the definitions alone. */
export function importedSections({ schemaOnly }: Pick<ImportSection, "schemaOnly">): Section[] {
  return sections.filter((section) => section !== "data" || !schemaOnly);
}

/** Options of pg_restore for one section: its own where it has some, else the general ones. */
export function restoreOptions(section: Section, options: ImportSection): readonly string[] {
  const own = {
    "pre-data": options.pgRestorePredataOptions,
    data: options.pgRestoreDataOptions,
    "post-data": options.pgRestorePostdataOptions,
  }[section];
  return own && own.length > 0 ? own : (options.pgRestoreExtraOptions ?? []);
}

/** Imports into the temporary server, which must run. */
export async function importDatabases(context: InstanceContext, cluster: Cluster): Promise<void> {
  const initdb = cluster.spec.bootstrap?.initdb;
  const section = initdb?.import;
  if (!initdb || !section) return;
  const field = "spec.bootstrap.initdb.import.source.externalCluster";
  const source = await openSource(context, cluster, section.source.externalCluster, field);
  // The user of a microservice import may be let into that one database only.
  const [first] = section.type === "microservice" ? section.databases : [];
  await waitForSource(context, withDatabase(source, first), { replication: false, mayRefuse: true });
  const run = new DatabaseImport(context, source, section);
  if (section.type === "microservice") await run.microservice(initdb);
  else await run.monolith(initdb.owner);
}

/** The database of the connection parameters is of no meaning; `postgres` is where lists are read. */
function withDatabase(source: SourceConnection, dbname = "postgres"): SourceConnection {
  return { ...source, conninfo: (overrides = {}) => source.conninfo({ dbname, ...overrides }) };
}

class DatabaseImport {
  readonly #context: InstanceContext;
  readonly #source: SourceConnection;
  readonly #options: ImportSection;

  constructor(context: InstanceContext, source: SourceConnection, options: ImportSection) {
    this.#context = context;
    this.#source = source;
    this.#options = options;
  }

  async microservice({ database, owner }: Initdb): Promise<void> {
    const [name] = this.#options.databases;
    if (!name || !database || !owner) {
      throw new Error("a microservice import needs one database in import.databases, and database and owner in initdb");
    }
    await this.#dump(name);
    await this.#execute(database, await this.#dropExtensions(database, await this.#listExtensions(name)));
    const user = quoteIdentifier(owner);
    await this.#execute("postgres", [`ALTER USER ${user} SUPERUSER`]);
    for (const section of importedSections(this.#options)) {
      const target = ["--no-owner", "--no-privileges", `--role=${owner}`, "-d", database];
      await this.#restore(name, section, target);
    }
    await this.#execute("postgres", [`ALTER USER ${user} NOSUPERUSER`]);
    await this.#removeDumps();
    await runBatch(this.#context, database, this.#options.postImportApplicationSQL ?? [], undefined);
    await this.#execute(database, ["ANALYZE VERBOSE"]);
  }

  async monolith(owner: string | undefined): Promise<void> {
    const { roles = [], databases } = this.#options;
    if (roles.length > 0) await importRoles(this.#context, withDatabase(this.#source), roles, owner);
    const names = databases.includes("*") ? await this.#listDatabases() : databases;
    for (const name of names) await this.#dump(name);
    for (const name of names) {
      for (const section of importedSections(this.#options)) {
        const there = await this.#exists(name);
        await this.#restore(name, section, there ? ["-d", name] : ["--create", "-d", "postgres"]);
      }
    }
    await this.#removeDumps();
    for (const name of names) await this.#execute(name, ["ANALYZE VERBOSE"]);
  }

  get #dumps(): string {
    return `${this.#context.paths.pgData}/dumps`;
  }

  async #dump(database: string): Promise<void> {
    this.#context.logger.info("Exporting database", { database, externalCluster: this.#source.name });
    await this.#context.files.makeDirectory(this.#dumps, 0o700);
    const args = [
      "-Fd",
      "-f",
      `${this.#dumps}/${database}.dump`,
      "-d",
      this.#source.conninfo({ dbname: database }),
      "-v",
    ];
    args.push(...importedSections(this.#options).map((section) => `--section=${section}`));
    args.push("-w", ...(this.#options.pgDumpExtraOptions ?? []));
    await runTool(this.#context, "pg_dump", args, { env: this.#source.environment });
  }

  async #restore(database: string, section: Section, target: readonly string[]): Promise<void> {
    const { paths, settings, logger } = this.#context;
    logger.info("Importing database", { database, section });
    const here = ["-h", paths.socketDir, "-p", String(settings.postgresPort), "-U", "postgres"];
    const options = restoreOptions(section, this.#options);
    await runTool(this.#context, "pg_restore", [
      ...here,
      ...target,
      "--section",
      section,
      ...options,
      `${this.#dumps}/${database}.dump`,
    ]);
  }

  #removeDumps(): Promise<void> {
    return this.#context.files.remove(this.#dumps, { recursive: true });
  }

  /** What a dump brings; other extensions that template1 had stay, as does PostgreSQL's own. */
  async #listExtensions(database: string): Promise<string[]> {
    const lines: string[] = [];
    const { code, signal } = await this.#context.processes.run(
      "pg_restore",
      ["-l", `${this.#dumps}/${database}.dump`],
      {
        env: { ...this.#context.settings.environment },
        onLine: (_pipe, line) => lines.push(line),
      },
    );
    if (code !== 0) throw new Error(`pg_restore -l failed (${code ?? signal}): ${lines.slice(-5).join(" | ")}`);
    return dumpedExtensions(lines);
  }

  /** Statements that drop those of the extensions that template1 had, so that the dump can bring its own. */
  async #dropExtensions(database: string, dumped: readonly string[]): Promise<string[]> {
    const session = await connectLocally(this.#context, database);
    try {
      const rows = await session.query("SELECT extname FROM pg_extension WHERE oid >= 16384");
      const names = rows.map((row) => String(row["extname"])).filter((name) => dumped.includes(name));
      return names.map((name) => `DROP EXTENSION IF EXISTS ${quoteIdentifier(name)} CASCADE`);
    } finally {
      await session.close();
    }
  }

  async #exists(database: string): Promise<boolean> {
    const session = await connectLocally(this.#context, "postgres");
    try {
      return (await session.query("SELECT 1 FROM pg_database WHERE datname = $1", [database])).length > 0;
    } finally {
      await session.close();
    }
  }

  async #listDatabases(): Promise<string[]> {
    const query =
      "SELECT COALESCE(json_agg(datname ORDER BY datname), '[]') FROM pg_database " +
      "WHERE datallowconn AND NOT datistemplate AND datname <> 'postgres'";
    return JSON.parse(await runQuery(this.#context, withDatabase(this.#source), query)) as string[];
  }

  async #execute(database: string, statements: readonly string[]): Promise<void> {
    const session = await connectLocally(this.#context, database);
    try {
      for (const statement of statements) await session.query(statement);
    } finally {
      await session.close();
    }
  }
}
