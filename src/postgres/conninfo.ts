import { paths, ports, roles } from "../api/constants.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import { byCodeUnits } from "./configuration.ts";

/** TCP user timeout of standby connections when the operator gives none, in milliseconds. */
export const defaultTcpUserTimeout = "5000";

export interface PrimaryConninfoOptions {
  host: string;
  /** What the primary shows in `pg_stat_replication`: the pod or job name. */
  applicationName: string;
  /** Value of `CNPG_STANDBY_TCP_USER_TIMEOUT`. @default "5000" */
  tcpUserTimeout?: string;
}

/** The connection text of a standby. It must not change without need: PostgreSQL restarts its WAL receiver on any difference. */
export function buildPrimaryConninfo(options: PrimaryConninfoOptions): string {
  return [
    `host=${options.host}`,
    `user=${roles.replication}`,
    `port=${ports.postgres}`,
    `sslkey=${paths.certificates}/streaming_replica.key`,
    `sslcert=${paths.certificates}/streaming_replica.crt`,
    `sslrootcert=${paths.certificates}/server-ca.crt`,
    `application_name=${options.applicationName}`,
    "sslmode=verify-ca",
    "dbname=postgres",
    `tcp_user_timeout=${quoteConninfo(options.tcpUserTimeout || defaultTcpUserTimeout)}`,
  ].join(" ");
}

/** Quotes a value of a connection text as libpq reads it. */
export function quoteConninfo(value: string): string {
  return `'${value.replace(/[\\']/g, (char) => `\\${char}`)}'`;
}

/** Joins parameters into a connection text, names sorted, every value quoted. */
export function formatConninfo(parameters: Readonly<Record<string, string>>): string {
  return Object.keys(parameters)
    .sort(byCodeUnits)
    .map((name) => `${name}=${quoteConninfo(parameters[name] ?? "")}`)
    .join(" ");
}

/** Reads a connection text of the keyword form into its parameters; `undefined` when it is malformed or a URL. */
export function parseConninfo(text: string): Record<string, string> | undefined {
  const parameters: Record<string, string> = {};
  let rest = text.trimStart();
  while (rest !== "") {
    const name = /^([A-Za-z_][A-Za-z0-9_]*)\s*=\s*/.exec(rest);
    if (!name?.[1]) return undefined;
    rest = rest.slice(name[0].length);
    const value = /^'((?:[^'\\]|\\[\s\S])*)'/.exec(rest) ?? /^((?:[^\s'\\]|\\[\s\S])*)/.exec(rest);
    if (!value) return undefined;
    parameters[name[1]] = (value[1] ?? "").replace(/\\([\s\S])/g, "$1");
    rest = rest.slice(value[0].length);
    if (rest !== "" && !/^\s/.test(rest)) return undefined;
    rest = rest.trimStart();
  }
  return parameters;
}

type ExternalCluster = NonNullable<Cluster["spec"]["externalClusters"]>[number];

/** Folder with the credentials of an external cluster. */
export function externalClusterFolder(name: string): string {
  return `${paths.external}/${name}`;
}

/** File that holds one key of a Secret of an external cluster. */
export function externalSecretFile(server: string, secret: { name?: string; key: string }): string {
  return `${externalClusterFolder(server)}/${secret.name ?? ""}_${secret.key}`;
}

/** The `externalClusters` entry of that name. */
export function findExternalCluster(cluster: Cluster, name: string): ExternalCluster | undefined {
  return cluster.spec.externalClusters?.find((candidate) => candidate.name === name);
}

/** Connection parameters of an external cluster, with the files its Secrets are written to. */
export function externalParameters(server: ExternalCluster): Record<string, string> {
  const file = (secret: { name?: string; key: string }) => externalSecretFile(server.name, secret);
  return {
    ...server.connectionParameters,
    ...(server.sslCert ? { sslcert: file(server.sslCert) } : {}),
    ...(server.sslKey ? { sslkey: file(server.sslKey) } : {}),
    ...(server.sslRootCert ? { sslrootcert: file(server.sslRootCert) } : {}),
    ...(server.password ? { passfile: `${externalClusterFolder(server.name)}/pgpass` } : {}),
  };
}

/** Connection text of an external cluster. `overrides` replaces single parameters, an empty value takes one away. */
export function buildExternalConninfo(
  server: ExternalCluster,
  overrides: Readonly<Record<string, string>> = {},
): string {
  const parameters = { ...externalParameters(server), ...overrides };
  for (const [name, value] of Object.entries(overrides)) if (value === "") delete parameters[name];
  return formatConninfo(parameters);
}

/** Content of the `pgpass` file that belongs to {@link buildExternalConninfo}. */
export function buildPgpass(server: ExternalCluster, password: string): string {
  const parameters = server.connectionParameters ?? {};
  const escapePart = (value: string) => value.replace(/[\\:]/g, (char) => `\\${char}`);
  const part = (value: string | undefined) => (value ? escapePart(value) : "*");
  const fields = [
    part(parameters["host"]),
    part(parameters["port"]),
    "*",
    part(parameters["user"]),
    escapePart(password),
  ];
  return `${fields.join(":")}\n`;
}

/** Hides passwords in a connection text that goes to a log. */
export function redactConninfo(text: string): string {
  return text
    .replace(/(\bpassword\s*=\s*)('(?:[^'\\]|\\[\s\S])*'|[^\s']+)/gi, "$1***")
    .replace(/(\/\/[^:/@\s]+):[^@\s]*@/g, "$1:***@");
}
