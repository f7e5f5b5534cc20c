import type { Cluster } from "../../api/generated/cluster.ts";
import {
  type ManagedRolesPlan,
  type PasswordState,
  planManagedRoles,
  type WantedRole,
  wantedOptions,
} from "../../plan/instance/managed-roles.ts";
import type { SqlSession } from "../../ports/sql-session.ts";
import { quoteIdentifier } from "../../postgres/identifiers.ts";
import { alterRole, changeMemberships, commentOnRole, createRole } from "../../postgres/role-sql.ts";
import type { InstanceContext } from "../instance-context.ts";
import { withSession } from "../local-sql.ts";
import type { ClusterStatusWriter } from "../reconcile/cluster-status.ts";
import { silentSettings } from "../reconcile/passwords.ts";
import type { SecretRead, SecretReader } from "../secret-reader.ts";
import { rolePassword } from "./role-password.ts";
import { readRoles } from "./role-rows.ts";
import { serverMessage } from "./server-message.ts";
import { inTransaction } from "./transaction.ts";

type Action = ManagedRolesPlan["actions"][number];

/** SQLSTATEs that only the user can do something about: dependent objects, an unknown role, a grant that is not allowed. */
const expectedStates: readonly string[] = ["2BP01", "42704", "0LP01"];

/** Keeps the roles of `spec.managed.roles` (reference: declarative objects §2). */
export class ManagedRolesStep {
  readonly #context: InstanceContext;
  readonly #secrets: SecretReader;
  readonly #status: ClusterStatusWriter;

  constructor(context: InstanceContext, secrets: SecretReader, status: ClusterStatusWriter) {
    this.#context = context;
    this.#secrets = secrets;
    this.#status = status;
  }

  /** False when a role is not yet as it is wanted; one that fails does not hold up the others. */
  async reconcile(cluster: Cluster, signal: AbortSignal): Promise<boolean> {
    const wanted = cluster.spec.managed?.roles ?? [];
    if (wanted.length === 0) {
      const isReported = Object.keys(cluster.status?.managedRolesStatus ?? {}).length > 0;
      if (isReported) await this.#report({ byStatus: {}, cannotReconcile: {}, passwordStatus: {} }, signal);
      return true;
    }
    const secrets = await this.#readSecrets(wanted, signal);
    const secretVersions = new Map(
      [...secrets].flatMap(([name, read]) =>
        read.kind === "found" ? [[name, read.secret.metadata.resourceVersion ?? ""] as const] : [],
      ),
    );
    return withSession(
      this.#context,
      "postgres",
      async (session) => {
        const passwordStatus: Record<string, PasswordState> = {
          ...cluster.status?.managedRolesStatus?.passwordStatus,
        };
        for (const name of Object.keys(passwordStatus)) {
          if (!wanted.some((role) => role.name === name && role.passwordSecret)) delete passwordStatus[name];
        }
        const cannotReconcile: Record<string, string[]> = {};
        let plan = planManagedRoles({ wanted, actual: await readRoles(session), secretVersions, passwordStatus });
        // One action a role and round: attributes, then the comment, then memberships.
        for (let round = 0; round < 3 && plan.actions.length > 0; round++) {
          for (const action of plan.actions) {
            const { name } = action.role;
            if (cannotReconcile[name]) continue;
            try {
              const state = await this.#apply(session, action, secrets);
              if (state) passwordStatus[name] = state;
              if (action.kind === "DELETE") delete passwordStatus[name];
              this.#context.logger.info("Changed a managed role", { role: name, action: action.kind });
            } catch (error) {
              signal.throwIfAborted();
              cannotReconcile[name] = [this.#explain(action, error)];
            }
          }
          plan = planManagedRoles({ wanted, actual: await readRoles(session), secretVersions, passwordStatus });
        }
        await this.#report({ byStatus: plan.byStatus, cannotReconcile, passwordStatus }, signal);
        return plan.actions.length === 0;
      },
      { signal },
    );
  }

  async #readSecrets(wanted: readonly WantedRole[], signal: AbortSignal): Promise<Map<string, SecretRead>> {
    const reads = new Map<string, SecretRead>();
    for (const { passwordSecret, disablePassword } of wanted) {
      if (!passwordSecret || disablePassword || reads.has(passwordSecret.name)) continue;
      reads.set(passwordSecret.name, await this.#secrets.read(passwordSecret.name, signal));
    }
    return reads;
  }

  /** Gives what to remember of the password when one was set. */
  async #apply(
    session: SqlSession,
    { kind, role, actual }: Action,
    secrets: ReadonlyMap<string, SecretRead>,
  ): Promise<PasswordState | undefined> {
    switch (kind) {
      case "DELETE":
        await session.query(`DROP ROLE ${quoteIdentifier(role.name)}`);
        return undefined;
      case "SET_COMMENT":
        await session.query(commentOnRole(role.name, role.comment ?? ""));
        return undefined;
      case "UPDATE_MEMBERSHIPS":
        await inTransaction(session, changeMemberships(role.name, actual?.inRoles ?? [], role.inRoles ?? []));
        return undefined;
      case "CREATE":
      case "UPDATE": {
        const read = role.passwordSecret && secrets.get(role.passwordSecret.name);
        const secret = rolePassword(role, read, this.#context.random);
        const options = wantedOptions(role, actual, secret?.password);
        const statements =
          kind === "CREATE"
            ? [createRole(role.name, { ...options, inRoles: role.inRoles ?? [] })]
            : [alterRole(role.name, options)];
        if (kind === "CREATE" && role.comment) statements.push(commentOnRole(role.name, role.comment));
        await inTransaction(session, [...silentSettings.map((setting) => `SET LOCAL ${setting}`), ...statements]);
        if (secret?.password.kind !== "set") return undefined;
        const [row] = await session.query("SELECT xmin::text AS xmin FROM pg_catalog.pg_authid WHERE rolname = $1", [
          role.name,
        ]);
        return { transactionID: Number(row?.["xmin"] ?? 0), resourceVersion: secret.version };
      }
    }
  }

  #explain({ kind, role }: Action, error: unknown): string {
    const { code, detail, message } = error as { code?: unknown; detail?: unknown; message?: unknown };
    const said = serverMessage(error) ?? String(message ?? error);
    const cause = code === "2BP01" && typeof detail === "string" ? detail : said;
    const expected = typeof code === "string" && expectedStates.includes(code);
    const text = `could not perform ${kind} on role ${role.name}: ${cause}`;
    const log = { role: role.name, action: kind, cause };
    if (expected) this.#context.logger.info("A managed role cannot be reconciled", log);
    else this.#context.logger.error("A managed role failed; it is tried again", log);
    return text;
  }

  async #report(
    wanted: {
      byStatus: Record<string, string[]>;
      cannotReconcile: Record<string, string[]>;
      passwordStatus: Record<string, PasswordState>;
    },
    signal: AbortSignal,
  ): Promise<void> {
    const filled = Object.entries(wanted).filter(([, value]) => Object.keys(value).length > 0);
    const managedRolesStatus = Object.fromEntries(filled);
    await this.#status.update((status) => ({ ...status, managedRolesStatus }), signal);
  }
}
