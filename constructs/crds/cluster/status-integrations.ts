import type { Schema } from "../../../src/schema/crd/structural-schema.ts";
import {
  type Fields,
  integer,
  listOf,
  mapOf,
  object,
  required,
  string,
  stringList,
  stringMap,
} from "../parts/builders.ts";

function listsByKey(description: string): Schema {
  return mapOf(description, { type: "array", items: { type: "string" } });
}

const plugin = object("What a plugin says about itself.", {
  backupCapabilities: stringList("What its backup service can do."),
  capabilities: stringList("Services that it has."),
  name: required(string("Name of the plugin.")),
  operatorCapabilities: stringList("What its operator service can do."),
  restoreJobHookCapabilities: stringList("What its restore service can do."),
  status: string("Status that the plugin set for the cluster."),
  version: required(string("Version of the plugin.")),
  walCapabilities: stringList("What its WAL service can do."),
});

/** Status of what surrounds the instances: plugins, poolers, roles, tablespaces and the objects they read. */
export const integrations: Fields = {
  configMapResourceVersion: object("Versions of the ConfigMaps in use.", {
    metrics: stringMap("Those with metric queries, by name."),
  }),
  managedRolesStatus: object("State of the managed roles.", {
    byStatus: listsByKey("Roles by state."),
    cannotReconcile: listsByKey("What stands in the way of a role, by role."),
    passwordStatus: mapOf(
      "Password that was last applied, by role.",
      object("A password that was applied.", {
        resourceVersion: string("Version of the Secret."),
        transactionID: integer("Transaction that last changed the role.", { bits: 64 }),
      }),
    ),
  }),
  pluginStatus: listOf("Plugins in use.", plugin),
  podSelectorRefs: listOf(
    "Addresses of the pods that the groups select.",
    object("A group of pods.", {
      ips: stringList("Addresses of its pods."),
      name: required(string("Name of the group.")),
    }),
    { keys: ["name"] },
  ),
  poolerIntegrations: object("What poolers need of the cluster.", {
    pgBouncerIntegration: object("What poolers with PgBouncer need.", {
      secrets: stringList("Secrets that they use."),
    }),
  }),
  secretsResourceVersion: object("Versions of the Secrets in use.", {
    applicationSecretVersion: string("That of the application's owner."),
    barmanEndpointCA: string("That of the CA for the object store."),
    caSecretVersion: string("That of the CA, as older operators wrote it."),
    clientCaSecretVersion: string("That of the CA of client certificates."),
    externalClusterSecretVersion: stringMap("Those for external clusters, by name."),
    managedRoleSecretVersion: stringMap("Those of managed roles, by name."),
    metrics: stringMap("Those with metric queries, by name."),
    replicationSecretVersion: string("That of the standbys' client certificate."),
    serverCaSecretVersion: string("That of the CA of the server certificate."),
    serverSecretVersion: string("That of the server certificate."),
    superuserSecretVersion: string("That of the superuser."),
  }),
  tablespacesStatus: listOf(
    "State of the tablespaces.",
    object("State of a tablespace.", {
      error: string("Why it is not as wanted."),
      name: required(string("Name of the tablespace.")),
      owner: string("Role that owns it."),
      state: required(string("State in one word.")),
    }),
  ),
};
