import { boolean, type Fields, integer, string } from "../parts/builders.ts";
import { ageColumn, column, type PrinterColumn } from "../parts/definition.ts";

/** Status fields of every object that is applied inside PostgreSQL. */
export const appliedStatus: Fields = {
  applied: boolean("Whether PostgreSQL is as the object says."),
  message: string("What stood in the way of the last attempt."),
  observedGeneration: integer("Generation of the object that was last looked at.", { bits: 64 }),
};

/** Columns of every object that is applied inside PostgreSQL. */
export const appliedColumns: readonly PrinterColumn[] = [
  ageColumn,
  column("Cluster", ".spec.cluster.name"),
  column("PG Name", ".spec.name"),
  column("Applied", ".status.applied", "boolean"),
  { ...column("Message", ".status.message"), description: "Outcome of the last attempt" },
];
