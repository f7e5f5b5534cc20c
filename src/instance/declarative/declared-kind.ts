import type { Cluster } from "../../api/generated/cluster.ts";
import type { Database } from "../../api/generated/database.ts";
import type { DatabaseRole } from "../../api/generated/databaserole.ts";
import type { Publication } from "../../api/generated/publication.ts";
import type { Subscription } from "../../api/generated/subscription.ts";
import type { ResourceType } from "../../ports/kube-api.ts";
import type { SqlSession } from "../../ports/sql-session.ts";
import type { InstanceContext } from "../instance-context.ts";
import { withSession } from "../local-sql.ts";
import type { SecretReader } from "../secret-reader.ts";

export type Declared = Database | DatabaseRole | Publication | Subscription;

export interface ApplyDeps {
  context: InstanceContext;
  secrets: SecretReader;
  cluster: Cluster;
  signal: AbortSignal;
}

/** What became of an object. */
export interface ApplyResult {
  /** Further fields of the status. */
  status?: object;
  failed?: string;
  /** How soon a failure that should pass by itself is tried again, in milliseconds. */
  retryAfterMs?: number;
}

/** What differs between the kinds of declared objects. */
export interface DeclaredKind {
  type: ResourceType<Declared>;
  finalizer: string;
  reclaim: (object: Declared) => "retain" | "delete";
  /** Tells that something beside the definition changed since the object was applied: a mark of what counts now. */
  renewal?: (object: Declared) => string;
  /** Whether what was applied is what the mark of `renewal` stands for. */
  isRenewed?: (object: Declared) => boolean;
  /** Why the object is not dealt with, whatever PostgreSQL has; nothing is dropped for it either. */
  refusal?: (object: Declared, cluster: Cluster) => string | undefined;
  /** What PostgreSQL has no longer as it was applied, in words. */
  findDrift: (object: Declared, deps: ApplyDeps) => Promise<string[]>;
  /** Brings PostgreSQL in line. */
  apply: (object: Declared, deps: ApplyDeps) => Promise<ApplyResult>;
  drop: (object: Declared, deps: ApplyDeps) => Promise<void>;
}

/** A missing synchronous standby must not hold up what is declared. */
const declaredSettings = { synchronous_commit: "local", search_path: "pg_catalog, public, pg_temp" };

/** Runs statements for a declared object; `limitMs` = what one of them may take where that can be long. */
export function inDatabase<T>(
  { context, signal }: ApplyDeps,
  database: string,
  work: (session: SqlSession) => Promise<T>,
  limitMs?: number,
): Promise<T> {
  return withSession(context, database, work, { signal, limitMs, parameters: declaredSettings });
}
