import type { CelRule } from "../../src/schema/crd/structural-schema.ts";
import { boolean, integer, object, required, string, use } from "./parts/builders.ts";
import { defineKind } from "./parts/definition.ts";
import { rule } from "./parts/rules.ts";
import { conditions } from "./shared/conditions.ts";
import { appliedColumns, appliedStatus } from "./shared/declarative-status.ts";
import { managedCluster } from "./shared/references.ts";
import { roleFields } from "./shared/role.ts";
import { reclaimPolicy } from "./shared/words.ts";

const rules: readonly CelRule[] = [
  rule("name is immutable", "self.name == oldSelf.name"),
  rule(
    "ensure: absent is not supported for DatabaseRole; delete the resource with databaseRoleReclaimPolicy: delete instead",
    "!has(self.ensure) || self.ensure != 'absent'",
  ),
  rule("the role name postgres is reserved", "self.name != 'postgres'"),
  rule("the role name streaming_replica is reserved", "self.name != 'streaming_replica'"),
  rule("role names starting with pg_ are reserved by PostgreSQL", "!self.name.startsWith('pg_')"),
  rule("role names starting with cnpg_ are reserved by the operator", "!self.name.startsWith('cnpg_')"),
  rule("role name must not be empty", "self.name.size() != 0"),
  rule(
    "passwordSecret and disablePassword are mutually exclusive",
    "!has(self.passwordSecret) || !has(self.disablePassword) || !self.disablePassword",
  ),
  rule(
    "clientCertificate requires the role to have login enabled",
    "!has(self.clientCertificate) || !self.clientCertificate.enabled || self.login",
  ),
];

/** CustomResourceDefinition of DatabaseRole. */
export const databaseRole = defineKind({
  group: "postgresql.cnpg.io",
  kind: "DatabaseRole",
  description: "A role of PostgreSQL, kept as the object says.",
  columns: appliedColumns,
  spec: object(
    "The role and the cluster that it is in.",
    {
      ...roleFields,
      clientCertificate: object("A client certificate for the role, issued by the operator.", {
        enabled: boolean("Whether the certificate is issued.", { default: true }),
      }),
      cluster: required(managedCluster),
      databaseRoleReclaimPolicy: use("What becomes of the role when this object is deleted.", reclaimPolicy),
    },
    { rules },
  ),
  status: object("Whether the role is as wanted.", {
    ...appliedStatus,
    clientCertificate: object("State of the client certificate.", {
      expiration: string("When the certificate expires."),
      message: string("Why the certificate could not be issued."),
    }),
    conditions,
    secretResourceVersion: string("Version of the password Secret that was last applied."),
    observedGeneration: integer("Generation of the object that was last looked at.", { bits: 64 }),
  }),
});
