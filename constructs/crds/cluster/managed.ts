import { enumOf, listOf, object, required } from "../parts/builders.ts";
import { roleFields } from "../shared/role.ts";
import { serviceTemplate } from "../shared/templates.ts";

const selectorTypes = ["rw", "r", "ro"] as const;

/** `spec.managed`: roles and Services that the operator keeps as they are written. */
export const managed = object("Roles and Services that are kept as they are written here.", {
  roles: listOf("Roles of PostgreSQL.", object("A role.", roleFields)),
  services: object("Services of the cluster.", {
    additional: listOf(
      "More Services.",
      object("A Service.", {
        selectorType: required(
          enumOf("Instances that it leads to: the primary (rw), any (r) or standbys (ro).", selectorTypes),
        ),
        serviceTemplate: required(serviceTemplate("What the Service is to look like.")),
        updateStrategy: enumOf("Whether a change patches the Service or replaces it.", ["patch", "replace"], {
          default: "patch",
        }),
      }),
    ),
    disabledDefaultServices: listOf("Services of the operator's own that are not made.", {
      type: "string",
      enum: selectorTypes,
    }),
  }),
});
