import type { Schema } from "../../../src/schema/crd/structural-schema.ts";
import { dateTime, enumOf, integer, listOf, object, required, string } from "../parts/builders.ts";

const label = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";

/** Conditions in the form that Kubernetes tools wait for. */
export const conditions: Schema = listOf(
  "What holds for the object at the moment, by type.",
  object("One statement about the object.", {
    lastTransitionTime: required(dateTime("When the status last changed.")),
    message: required(string("Details for people.", { maxLength: 32768 })),
    observedGeneration: integer("Generation of the object that the statement is about.", { bits: 64, minimum: 0 }),
    reason: required(
      string("One word for programs: why the status is what it is.", {
        minLength: 1,
        maxLength: 1024,
        pattern: "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
      }),
    ),
    status: required(enumOf("Whether the statement holds.", ["True", "False", "Unknown"])),
    type: required(
      string("What the statement is about.", {
        maxLength: 316,
        pattern: String.raw`^(${label}(\.${label})*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`,
      }),
    ),
  }),
);
