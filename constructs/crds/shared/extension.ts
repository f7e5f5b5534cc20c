import type { Schema } from "../../../src/schema/crd/structural-schema.ts";
import { imageVolumeSource } from "../core/generated/kubernetes.ts";
import { listOf, object, required, string, stringList, use } from "../parts/builders.ts";

/** Extensions that come as images and are mounted beside PostgreSQL, each name once. */
export function extensionImages(description: string): Schema {
  return listOf(description, extension, { keys: ["name"] });
}

/** Extensions that were found in use; a record of the past merges as a plain list. */
export function usedExtensionImages(description: string): Schema {
  return listOf(description, extension);
}

const environment: Schema = listOf(
  "Environment variables that the extension needs.",
  object("One environment variable.", {
    name: required(string("Name of the variable.", { minLength: 1, pattern: "^[a-zA-Z_][a-zA-Z0-9_]*$" })),
    value: required(string("Value of the variable.", { minLength: 1 })),
  }),
  { keys: ["name"] },
);

const extension: Schema = object("An extension and the folders of its image that PostgreSQL is to search.", {
  bin_path: stringList("Folders of the image that are put on PATH."),
  dynamic_library_path: stringList("Folders of the image that are put on dynamic_library_path."),
  env: environment,
  extension_control_path: stringList("Folders of the image that are put on extension_control_path."),
  image: use("Image that holds the extension's files.", imageVolumeSource),
  ld_library_path: stringList("Folders of the image that are put on the system's library path."),
  name: required(
    string("Name of the extension; it also names the volume.", {
      minLength: 1,
      maxLength: 59,
      pattern: "^[a-z0-9]([-a-z0-9_]*[a-z0-9])?$",
    }),
  ),
});
