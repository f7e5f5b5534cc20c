import type { CelRule } from "../../src/schema/crd/structural-schema.ts";
import { boolean, listOf, object, required, string, stringList, stringMap, use } from "./parts/builders.ts";
import { defineKind } from "./parts/definition.ts";
import { immutable, rule } from "./parts/rules.ts";
import { appliedColumns, appliedStatus } from "./shared/declarative-status.ts";
import { managedCluster } from "./shared/references.ts";
import { reclaimPolicy } from "./shared/words.ts";

/** Exactly one of two optional fields. */
function eitherOr(first: string, second: string): CelRule {
  return rule(
    `${first} and ${second} are mutually exclusive`,
    `(has(self.${first}) && !has(self.${second})) || (!has(self.${first}) && has(self.${second}))`,
  );
}

const published = object(
  "One table, or all tables of a schema.",
  {
    table: object("A table.", {
      columns: stringList("Columns that are published; all by default."),
      name: required(string("Name of the table.")),
      only: boolean("Leave out the tables that inherit from it."),
      schema: string("Schema that the table is in."),
    }),
    tablesInSchema: string("Schema whose tables are published, later ones included."),
  },
  { rules: [eitherOr("tablesInSchema", "table")] },
);

const target = object(
  "What is published: all tables or a list of objects.",
  {
    allTables: boolean("Publish every table of the database, later ones included.", {
      rules: [immutable("allTables is immutable")],
    }),
    objects: listOf("Tables and schemas that are published.", published, {
      maxItems: 100000,
      rules: [
        rule(
          "specifying a column list when the publication also publishes tablesInSchema is not supported",
          "!(self.exists(o, has(o.table) && has(o.table.columns)) && self.exists(o, has(o.tablesInSchema)))",
        ),
      ],
    }),
  },
  { rules: [eitherOr("allTables", "objects")] },
);

/** CustomResourceDefinition of Publication. */
export const publication = defineKind({
  group: "postgresql.cnpg.io",
  kind: "Publication",
  description: "A publication for logical replication, kept as the object says.",
  columns: appliedColumns,
  spec: object("The publication and the database that it is in.", {
    cluster: required(managedCluster),
    dbname: required(string("Database that is published from.", { rules: [immutable("dbname is immutable")] })),
    name: required(string("Name of the publication.", { rules: [immutable("name is immutable")] })),
    parameters: stringMap("Parameters of the publication, as in its WITH clause."),
    publicationReclaimPolicy: use("What becomes of the publication when this object is deleted.", reclaimPolicy),
    target: required(target),
  }),
  status: object("Whether the publication is as wanted.", appliedStatus),
});
