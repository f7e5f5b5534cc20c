import { integer, object, string, stringList } from "./parts/builders.ts";
import { ageColumn, defineKind } from "./parts/definition.ts";

/** CustomResourceDefinition of FailoverQuorum. */
export const failoverQuorum = defineKind({
  group: "postgresql.cnpg.io",
  kind: "FailoverQuorum",
  description:
    "What the last primary of a cluster knew about its synchronous standbys, so that a failover loses nothing.",
  columns: [ageColumn],
  status: object("Synchronous replication as the primary applied it last.", {
    method: string("Way in which PostgreSQL picks the standbys that it waits for: ANY or FIRST."),
    primary: string("Instance that wrote this object."),
    standbyNames: stringList("Instances that may be waited for."),
    standbyNumber: integer("Standbys that each commit waits for."),
  }),
});
