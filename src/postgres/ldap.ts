import type { Cluster } from "../api/generated/cluster.ts";

type LdapSpec = NonNullable<NonNullable<Cluster["spec"]["postgresql"]>["ldap"]>;

/** The `pg_hba.conf` line for LDAP; `undefined` when the Cluster has none. Throws when the bind password is missing. */
export function buildLdapLine(cluster: Cluster, bindPassword: string | undefined): string | undefined {
  const ldap = cluster.spec.postgresql?.ldap;
  if (!ldap?.server) return undefined;
  const parts = ["host all all 0.0.0.0/0 ldap", option("ldapserver", ldap.server)];
  if (ldap.port) parts.push(`ldapport=${ldap.port}`);
  if (ldap.scheme) parts.push(option("ldapscheme", ldap.scheme));
  if (ldap.tls) parts.push("ldaptls=1");
  if (ldap.bindAsAuth) {
    parts.push(option("ldapprefix", ldap.bindAsAuth.prefix ?? ""), option("ldapsuffix", ldap.bindAsAuth.suffix ?? ""));
  }
  if (ldap.bindSearchAuth) parts.push(...searchOptions(ldap.bindSearchAuth, cluster, bindPassword));
  return parts.join(" ");
}

function searchOptions(
  search: NonNullable<LdapSpec["bindSearchAuth"]>,
  cluster: Cluster,
  bindPassword: string | undefined,
): string[] {
  if (search.bindPassword && bindPassword === undefined) {
    throw new Error(
      `cluster ${cluster.metadata.name ?? ""}: spec.postgresql.ldap.bindSearchAuth.bindPassword names Secret ` +
        `"${search.bindPassword.name ?? ""}" key "${search.bindPassword.key}", which is not readable; create it`,
    );
  }
  return [
    option("ldapbasedn", search.baseDN ?? ""),
    option("ldapbinddn", search.bindDN ?? ""),
    option("ldapbindpasswd", bindPassword ?? ""),
    ...(search.searchFilter ? [option("ldapsearchfilter", search.searchFilter)] : []),
    ...(search.searchAttribute ? [option("ldapsearchattribute", search.searchAttribute)] : []),
  ];
}

function option(name: string, value: string): string {
  return `${name}="${value.replaceAll('"', '""').replaceAll("\n", "\\\n")}"`;
}
