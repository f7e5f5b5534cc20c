import {
  activeBootstrap,
  applicationDatabase,
  clusterName,
  clusterNamespace,
  isReplicaCluster,
} from "../api/cluster-facts.ts";
import { ports, roles } from "../api/constants.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import type { Secret } from "../api/generated/kubernetes.ts";
import { labels } from "../api/labels.ts";
import { childNames } from "../api/names.ts";
import type { BuildContext } from "./context.ts";
import { childMetadata, managedByLabel } from "./metadata.ts";

/** Whether the operator makes the Secret of the superuser; if not, one that it owns is to be deleted. */
export function wantsSuperuserSecret(cluster: Cluster): boolean {
  return (cluster.spec.enableSuperuserAccess ?? false) && !cluster.spec.superuserSecret?.name;
}

/** Whether the operator makes the Secret of the application's user. */
export function wantsApplicationSecret(cluster: Cluster): boolean {
  if (!applicationDatabase(cluster) || activeBootstrap(cluster)?.secret?.name) return false;
  const { recovery, pg_basebackup } = cluster.spec.bootstrap ?? {};
  // The roles of a replica cluster come from its source.
  return recovery || pg_basebackup ? !isReplicaCluster(cluster) : true;
}

/** The Secret with the superuser's credentials. */
export function buildSuperuserSecret(cluster: Cluster, password: string, context: BuildContext): Secret {
  const name = childNames(clusterName(cluster)).superuser;
  return credentialSecret(cluster, context, {
    name,
    userType: "superuser",
    user: roles.superuser,
    database: "*",
    password,
  });
}

/** The Secret with the application user's credentials. */
export function buildApplicationSecret(cluster: Cluster, password: string, context: BuildContext): Secret {
  const application = applicationDatabase(cluster);
  if (!application)
    throw new Error(
      `cluster ${clusterNamespace(cluster)}/${clusterName(cluster)} has no application database: ` +
        "set database and owner in its bootstrap section",
    );
  return credentialSecret(cluster, context, {
    name: childNames(clusterName(cluster)).app,
    userType: "app",
    user: application.owner,
    database: application.database,
    password,
  });
}

function credentialSecret(
  cluster: Cluster,
  context: BuildContext,
  parts: { name: string; userType: "app" | "superuser"; user: string; database: string; password: string },
): Secret {
  const { user, database, password } = parts;
  const host = childNames(clusterName(cluster)).rw;
  const address = `${host}.${clusterNamespace(cluster)}`;
  const port = String(ports.postgres);
  const uris = (name: string) => ({
    uri: `postgresql://${encode(user)}:${encode(password)}@${name}:${port}/${encode(database)}`,
    jdbc: `jdbc:postgresql://${name}:${port}/${encode(database)}?password=${encode(password)}&user=${encode(user)}`,
  });
  const near = uris(address);
  const far = uris(`${address}.svc.${context.clusterDomain}`);
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: childMetadata(cluster, context, {
      name: parts.name,
      labels: { ...managedByLabel, [labels.userType]: parts.userType, [labels.reload]: "true" },
    }),
    type: "kubernetes.io/basic-auth",
    data: encodeData({
      username: user,
      user,
      password,
      dbname: database,
      host,
      port,
      pgpass: `${[host, port, database, user, password].map(escapePgpass).join(":")}\n`,
      uri: near.uri,
      "jdbc-uri": near.jdbc,
      "fqdn-uri": far.uri,
      "fqdn-jdbc-uri": far.jdbc,
    }),
  };
}

/** A copy of the operator's pull secret for the cluster's namespace. */
export function buildPullSecret(cluster: Cluster, source: Secret, context: BuildContext): Secret {
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: childMetadata(cluster, context, {
      name: childNames(clusterName(cluster)).pull,
      labels: managedByLabel,
    }),
    type: source.type ?? "Opaque",
    data: { ...source.data },
  };
}

/** Texts as the `data` of a Secret carries them. */
export function encodeData(texts: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, toBase64(text)]));
}

function toBase64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

function encode(text: string): string {
  return encodeURIComponent(text);
}

/** A colon separates the fields of a pgpass line; a backslash protects it. */
function escapePgpass(text: string): string {
  return text.replace(/[\\:]/g, "\\$&");
}
