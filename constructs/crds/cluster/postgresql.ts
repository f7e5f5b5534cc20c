import { secretKeySelector } from "../core/generated/kubernetes.ts";
import { boolean, enumOf, integer, object, required, string, stringList, stringMap, use } from "../parts/builders.ts";
import { rule } from "../parts/rules.ts";
import { extensionImages } from "../shared/extension.ts";

const ldap = object("Lookup of passwords in an LDAP directory.", {
  bindAsAuth: object("Log in to the directory as the user, by a name made from a prefix and a suffix.", {
    prefix: string("Text before the user name."),
    suffix: string("Text after the user name."),
  }),
  bindSearchAuth: object("Search for the user in the directory, then log in as the entry found.", {
    baseDN: string("Entry at which the search starts."),
    bindDN: string("Entry that the search is done as."),
    bindPassword: use("Secret key with the password of that entry.", secretKeySelector),
    searchAttribute: string("Attribute that is compared with the user name."),
    searchFilter: string("Filter of the search."),
  }),
  port: integer("Port of the directory server."),
  scheme: enumOf("Protocol of the directory server.", ["ldap", "ldaps"]),
  server: string("Host name or address of the directory server."),
  tls: boolean("Upgrade the connection to TLS."),
});

const synchronous = object(
  "Synchronous replication.",
  {
    dataDurability: enumOf(
      "Whether writes wait while too few standbys are there (required) or go on without (preferred).",
      ["required", "preferred"],
    ),
    failoverQuorum: boolean("Fail over only when enough standbys are seen to rule out data loss."),
    maxStandbyNamesFromCluster: integer("Instances of the cluster that are listed at most."),
    method: required(enumOf("Which of the listed standbys count: any of them or the first ones.", ["any", "first"])),
    number: required(
      integer("Standbys that each commit waits for.", {
        rules: [rule("The number of synchronous replicas should be greater than zero", "self > 0")],
      }),
    ),
    standbyNamesPost: stringList("Names listed after those of the cluster's instances."),
    standbyNamesPre: stringList("Names listed before those of the cluster's instances."),
  },
  {
    rules: [
      rule(
        "dataDurability set to 'preferred' requires empty 'standbyNamesPre' and empty 'standbyNamesPost'",
        "self.dataDurability!='preferred' || ((!has(self.standbyNamesPre) || self.standbyNamesPre.size()==0) && (!has(self.standbyNamesPost) || self.standbyNamesPost.size()==0))",
      ),
    ],
  },
);

/** `spec.postgresql`: how PostgreSQL is configured. */
export const postgresql = object("How PostgreSQL is configured.", {
  enableAlterSystem: boolean("Whether ALTER SYSTEM works; false by default."),
  extensions: extensionImages("Extensions that come as images."),
  ldap,
  parameters: stringMap("Settings of PostgreSQL, by name."),
  pg_hba: stringList("Lines put into pg_hba.conf after the operator's own."),
  pg_ident: stringList("Lines put into pg_ident.conf after the operator's own."),
  promotionTimeout: integer("Seconds that a promotion may take; about a year by default.", { bits: 32 }),
  shared_preload_libraries: stringList("Libraries loaded at the server's start."),
  syncReplicaElectionConstraint: object("Which standbys may be synchronous, by where they run.", {
    enabled: required(boolean("Whether the constraint applies.")),
    nodeLabelsAntiAffinity: stringList("Node labels in which a synchronous standby has to differ from the primary."),
  }),
  synchronous,
});
