import type { Cluster } from "../../api/generated/cluster.ts";
import { planExtensions } from "../../plan/instance/extensions.ts";
import type { SqlSession } from "../../ports/sql-session.ts";
import { quoteIdentifier } from "../../postgres/identifiers.ts";
import { managedExtensions, usedExtensions } from "../../postgres/managed-extensions.ts";
import type { InstanceContext } from "../instance-context.ts";
import { type LocalSql, withSession } from "../local-sql.ts";

const managed = managedExtensions.filter((extension) => extension.createsObjects).map((extension) => extension.name);

/** Keeps the managed extensions in every database as the Cluster's parameters ask for them. */
export class ExtensionStep {
  readonly #context: InstanceContext;
  #applied: string | undefined;

  constructor(context: InstanceContext) {
    this.#context = context;
  }

  /** Looks into every database again next time. */
  forget(): void {
    this.#applied = undefined;
  }

  async reconcile(cluster: Cluster, sql: LocalSql, signal: AbortSignal): Promise<void> {
    const used = usedExtensions(cluster.spec.postgresql?.parameters ?? {})
      .filter((extension) => extension.createsObjects)
      .map((extension) => extension.name);
    const key = used.join(",");
    if (key === this.#applied) return;
    for (const row of await sql.query("SELECT datname FROM pg_database WHERE datallowconn ORDER BY datname")) {
      await this.#reconcileDatabase(String(row["datname"]), used, signal);
    }
    this.#applied = key;
  }

  async #reconcileDatabase(database: string, used: readonly string[], signal: AbortSignal): Promise<void> {
    const { logger } = this.#context;
    const work = async (session: SqlSession) => {
      const rows = await session.query("SELECT extname FROM pg_catalog.pg_extension");
      const installed = rows.map((row) => String(row["extname"]));
      for (const action of planExtensions({ managed, used, installed })) {
        const name = quoteIdentifier(action.name);
        await session.query(action.kind === "create" ? `CREATE EXTENSION ${name}` : `DROP EXTENSION ${name}`);
        logger.info("Changed a managed extension", { database, extension: action.name, action: action.kind });
      }
    };
    await withSession(this.#context, database, work, { signal, parameters: { search_path: '"$user", public' } });
  }
}
