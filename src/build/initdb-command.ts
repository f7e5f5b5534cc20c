import type { Cluster } from "../api/generated/cluster.ts";
import { formatInitdbFlags } from "../postgres/initdb-flags.ts";
import { joinShellWords } from "../postgres/shell-words.ts";
import { walFlags } from "./wal-flags.ts";

/** The initdb section of a cluster's bootstrap. */
export type InitdbSection = NonNullable<NonNullable<Cluster["spec"]["bootstrap"]>["initdb"]>;

/** Folders in which the SQL files of the bootstrap's references are mounted. */
export const sqlRefsFolders = {
  application: "/etc/post-init-application-sql",
  template: "/etc/post-init-template-sql",
  postgres: "/etc/post-init-sql",
} as const;

/** Arguments of the job that makes a new database system, or that imports into one. */
export function initdbCommand(cluster: Cluster, section: InitdbSection): string[] {
  const command = ["init", "--initdb-flags", formatInitdbFlags(cluster)];
  pushSql(command, "--post-init-sql", section.postInitSQL);
  pushSql(command, "--post-init-application-sql", section.postInitApplicationSQL);
  pushSql(command, "--post-init-template-sql", section.postInitTemplateSQL);
  if (section.database && section.owner) command.push("--app-db-name", section.database, "--app-user", section.owner);
  command.push(...walFlags(cluster));
  // An import fills the databases from elsewhere; nothing is mounted for it.
  if (section.import) return command;
  if (hasRefs(section.postInitApplicationSQLRefs))
    command.push("--post-init-application-sql-refs-folder", sqlRefsFolders.application);
  if (hasRefs(section.postInitTemplateSQLRefs))
    command.push("--post-init-template-sql-refs-folder", sqlRefsFolders.template);
  if (hasRefs(section.postInitSQLRefs)) command.push("--post-init-sql-refs-folder", sqlRefsFolders.postgres);
  return command;
}

function pushSql(command: string[], flag: string, statements: readonly string[] | undefined): void {
  if (statements && statements.length > 0) command.push(flag, joinShellWords(statements));
}

function hasRefs(refs: InitdbSection["postInitSQLRefs"]): boolean {
  return (refs?.secretRefs?.length ?? 0) + (refs?.configMapRefs?.length ?? 0) > 0;
}
