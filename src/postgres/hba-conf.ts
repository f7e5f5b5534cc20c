import type { Cluster } from "../api/generated/cluster.ts";
import { buildLdapLine } from "./ldap.ts";

export interface HbaOptions {
  cluster: Cluster;
  /** Major version of the Cluster's image. */
  major: number;
  /** Password of the LDAP bind account, from its Secret; required when the specification names one. */
  ldapBindPassword?: string;
}

const fixedRules = [
  "local all cnpg_metrics_exporter peer map=cnpg_metrics_exporter",
  "local all all peer map=local",
  "hostssl postgres streaming_replica all cert map=cnpg_streaming_replica",
  "hostssl replication streaming_replica all cert map=cnpg_streaming_replica",
  "hostssl all cnpg_pooler_pgbouncer all cert map=cnpg_pooler_pgbouncer",
];

/** The one rule that recovery jobs need: the instance manager itself, over the socket. */
export const minimalHbaConf = "local all all peer map=local\n";

/** Text of `pg_hba.conf`. Our own rules come first, so that no user rule can lock the replicas out. */
export function buildHbaConf(options: HbaOptions): string {
  const { cluster, major } = options;
  const ldap = buildLdapLine(cluster, options.ldapBindPassword);
  const method = major < 14 ? "md5" : "scram-sha-256";
  return [
    "",
    "# FIXED RULES: replication, pooler and monitoring depend on them",
    ...fixedRules,
    "",
    "# USER-DEFINED RULES: spec.postgresql.pg_hba",
    ...(cluster.spec.postgresql?.pg_hba ?? []).flatMap((line) => expandPodSelector(cluster, line)),
    "",
    ...(ldap === undefined ? [] : ["# LDAP: spec.postgresql.ldap", ldap, ""]),
    "# DEFAULT: anything no rule above has decided",
    `host all all all ${method}`,
    "",
  ].join("\n");
}

const podSelector = /\$\{podselector:([^}]*)\}/;

/** One line per pod address that the first reference in the line stands for. */
function expandPodSelector(cluster: Cluster, line: string): string[] {
  const match = podSelector.exec(line);
  if (!match) return [line];
  const name = match[1] ?? "";
  const declared = cluster.spec.podSelectorRefs?.some((ref) => ref.name === name) ?? false;
  const resolved = cluster.status?.podSelectorRefs?.find((ref) => ref.name === name);
  if (!declared && !resolved) return [`# ${line} # pod selector "${name}" is not in spec.podSelectorRefs`];
  return (resolved?.ips ?? []).map((ip) => line.replace(match[0], () => `${ip}/${ip.includes(":") ? 128 : 32}`));
}
