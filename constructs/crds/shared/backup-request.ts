import type { Schema } from "../../../src/schema/crd/structural-schema.ts";
import { boolean, enumOf, type Fields, object, required, string, stringMap } from "../parts/builders.ts";

/** How an online volume snapshot enters and leaves backup mode. */
export const onlineConfiguration: Schema = object("How a hot backup by volume snapshot runs.", {
  immediateCheckpoint: boolean("Start with a fast checkpoint instead of waiting for a spread one."),
  waitForArchive: boolean("Wait at the end until the last WAL file of the backup is archived.", { default: true }),
});

/** Which instance takes a backup. */
export function backupTarget(description: string, byDefault?: string): Schema {
  return enumOf(description, ["primary", "prefer-standby"], byDefault ? { default: byDefault } : {});
}

/** What a Backup asks for; a ScheduledBackup repeats it on a schedule. */
export const backupRequest: Fields = {
  method: enumOf("Way in which the backup is taken.", ["barmanObjectStore", "volumeSnapshot", "plugin"], {
    default: "barmanObjectStore",
  }),
  online: boolean("Keep PostgreSQL running during a volume snapshot; the cluster's setting applies by default."),
  onlineConfiguration,
  pluginConfiguration: object("Plugin that takes the backup, for method plugin.", {
    name: required(string("Name of the plugin.")),
    parameters: stringMap("Parameters passed to the plugin as they are."),
  }),
  target: backupTarget("Instance that takes the backup; the cluster's setting applies by default."),
};
