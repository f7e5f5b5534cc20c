import { formatSettings } from "./configuration.ts";

/** Command that fetches a WAL file during recovery. */
export const restoreCommand = "/controller/manager wal-restore --log-destination /controller/log/postgres.json %f %p";

/** Which content `override.conf` is to have. */
export type OverrideState =
  | { kind: "empty" }
  /** A standby, a designated primary (conninfo of the external cluster, no slot) or a primary made by init (no slot). */
  | { kind: "standby"; primaryConninfo: string; slotName?: string }
  /** While a logical import fills the new cluster: nothing is durable until it has ended. */
  | { kind: "import" };

/** Text of `override.conf`. */
export function buildOverrideConf(state: OverrideState): string {
  switch (state.kind) {
    case "empty":
      return "";
    case "standby":
      return formatSettings(
        new Map([
          ["primary_conninfo", state.primaryConninfo],
          ...(state.slotName === undefined ? [] : ([["primary_slot_name", state.slotName]] as const)),
          ["recovery_target_timeline", "latest"],
          ["restore_command", restoreCommand],
        ]),
      );
    case "import":
      return formatSettings(
        new Map([
          ["archive_mode", "off"],
          ["fsync", "off"],
          ["full_page_writes", "off"],
          ["max_wal_senders", "0"],
          ["wal_level", "minimal"],
        ]),
      );
  }
}
