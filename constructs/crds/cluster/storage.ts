import type { Schema } from "../../../src/schema/crd/structural-schema.ts";
import { persistentVolumeClaimSpec } from "../core/generated/kubernetes.ts";
import { boolean, type Fields, listOf, object, required, string, use } from "../parts/builders.ts";

function volume(description: string): Schema {
  return object(description, {
    pvcTemplate: use("Volume claim that the other fields are laid over.", persistentVolumeClaimSpec),
    resizeInUseVolumes: boolean("Grow existing volumes when the size grows.", { default: true }),
    size: string("Size of each volume, such as 10Gi; it can only grow."),
    storageClass: string("Storage class of the volumes; the Kubernetes cluster's default otherwise."),
  });
}

/** Volumes of the instances. */
export const storage: Fields = {
  storage: volume("Volume that holds the data."),
  tablespaces: listOf(
    "Tablespaces, each on a volume of its own.",
    object("A tablespace.", {
      name: required(string("Name of the tablespace.")),
      owner: object("Role that owns the tablespace.", { name: string("Name of the role.") }),
      storage: required(volume("Volume that holds the tablespace.")),
      temporary: boolean("Use the tablespace for temporary objects too.", { default: false }),
    }),
  ),
  walStorage: volume("Volume that holds the WAL; beside the data by default."),
};
