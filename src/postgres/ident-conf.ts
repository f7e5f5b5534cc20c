import { roles } from "../api/constants.ts";

/** What stands for the system user when the current uid has no name; no peer can ever be called so. */
export const unknownSystemUser = "/";

/** Text of `pg_ident.conf`. `systemUser` is the name of the uid that the instance manager and PostgreSQL run under. */
export function buildIdentConf(systemUser: string, userLines: readonly string[] = []): string {
  return [
    "",
    "# FIXED RULES: the instance manager, the replicas, the pooler and the metrics exporter",
    `local ${systemUser} ${roles.superuser}`,
    `cnpg_streaming_replica ${roles.replication} ${roles.replication}`,
    `cnpg_pooler_pgbouncer ${roles.pooler} ${roles.pooler}`,
    `cnpg_metrics_exporter ${systemUser} ${roles.metrics}`,
    "",
    "# USER-DEFINED RULES: spec.postgresql.pg_ident",
    ...userLines,
    "",
  ].join("\n");
}
