import type { Cluster } from "../../api/generated/cluster.ts";
import {
  planTablespaces,
  type TablespaceState,
  type TablespaceStep,
  tablespaceState,
} from "../../plan/instance/tablespaces.ts";
import type { SqlSession } from "../../ports/sql-session.ts";
import { changeTablespaceOwner, createTablespace } from "../../postgres/tablespace-sql.ts";
import type { InstanceContext } from "../instance-context.ts";
import { withSession } from "../local-sql.ts";
import type { ClusterStatusWriter } from "../reconcile/cluster-status.ts";
import { errorText } from "./server-message.ts";

const ownersSql = `SELECT t.spcname AS name, pg_catalog.pg_get_userbyid(t.spcowner) AS owner
  FROM pg_catalog.pg_tablespace t`;

/** Keeps the tablespaces of `spec.tablespaces` (reference: declarative objects §4). */
export class TablespacesStep {
  readonly #context: InstanceContext;
  readonly #status: ClusterStatusWriter;

  constructor(context: InstanceContext, status: ClusterStatusWriter) {
    this.#context = context;
    this.#status = status;
  }

  /** False when a tablespace is not yet as it is wanted; one that fails does not hold up the others. */
  async reconcile(cluster: Cluster, signal: AbortSignal): Promise<boolean> {
    const wanted = cluster.spec.tablespaces ?? [];
    if (wanted.length === 0 && !cluster.status?.tablespacesStatus?.length) return true;
    const mounted = new Set<string>();
    for (const { name } of wanted) if (await this.#context.files.exists(this.#mount(name))) mounted.add(name);
    return withSession(
      this.#context,
      "postgres",
      async (session) => {
        const rows = await session.query(ownersSql);
        const owners = new Map(rows.map((row) => [String(row["name"]), String(row["owner"])]));
        const { podName } = this.#context.settings;
        const states: TablespaceState[] = [];
        for (const step of planTablespaces({ cluster, podName, owners, mounted })) {
          states.push(tablespaceState(step, await this.#apply(session, step, signal)));
        }
        await this.#report(cluster, states, signal);
        return states.every(({ state }) => state === "reconciled");
      },
      { signal },
    );
  }

  #mount(name: string): string {
    return `${this.#context.settings.tablespaces}/${name}`;
  }

  /** Gives why the server refused, if it did. */
  async #apply(session: SqlSession, step: TablespaceStep, signal: AbortSignal): Promise<string | undefined> {
    const { kind, name, owner } = step;
    if (kind === "keep" || kind === "defer") return undefined;
    const log = { tablespace: name, owner };
    try {
      if (kind === "create") {
        const location = `${this.#mount(name)}/data`;
        await this.#context.files.makeDirectory(location, 0o700);
        await session.query(createTablespace(name, owner, location));
      } else {
        await session.query(changeTablespaceOwner(name, owner));
      }
      this.#context.logger.info(kind === "create" ? "Created a tablespace" : "Changed a tablespace's owner", log);
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      const cause = errorText(error);
      this.#context.logger.error("A tablespace failed; it is tried again", { ...log, cause });
      return cause;
    }
  }

  async #report(cluster: Cluster, states: TablespaceState[], signal: AbortSignal): Promise<void> {
    if (JSON.stringify(inOneOrder(cluster.status?.tablespacesStatus ?? [])) === JSON.stringify(inOneOrder(states))) {
      return;
    }
    await this.#status.update((status) => ({ ...status, tablespacesStatus: states }), signal);
  }
}

/** The same fields in the same order, whatever order the API server gave them in. */
function inOneOrder(states: readonly TablespaceState[]): unknown[] {
  return states.map(({ name, owner, state, error }) => [name, owner, state, error]);
}
