import type { Schema } from "../../../src/schema/crd/structural-schema.ts";
import { enumOf } from "../parts/builders.ts";

/** Whether something is to exist in PostgreSQL. */
export const ensure: Schema = enumOf(
  "Whether it is to exist (present) or to be dropped (absent).",
  ["present", "absent"],
  {
    default: "present",
  },
);

/** What happens in PostgreSQL when the Kubernetes object is deleted. */
export const reclaimPolicy: Schema = enumOf(
  "What becomes of it in PostgreSQL when this object is deleted: kept (retain) or dropped (delete).",
  ["delete", "retain"],
  { default: "retain" },
);

/** Level from which log lines are written. */
export const logLevel: Schema = enumOf(
  "Least severe level of log lines that are written.",
  ["error", "warning", "info", "debug", "trace"],
  { default: "info" },
);
