import type { MethodWindow } from "./backup.ts";

/** Names by which the barman-cloud plugin measures what can be restored, in seconds since the epoch; 0 = nothing. */
const first = "barman_cloud_cloudnative_pg_io_first_recoverability_point";
const last = "barman_cloud_cloudnative_pg_io_last_available_backup_timestamp";

/** What the archive of a plugin can restore, from its own metrics; `undefined` when it does not measure it. */
export function readPluginWindow(samples: readonly { name: string; value: number }[]): MethodWindow | undefined {
  const seconds = (name: string) => samples.find((sample) => sample.name === name)?.value;
  const [firstSeconds, lastSeconds] = [seconds(first), seconds(last)];
  if (firstSeconds === undefined || lastSeconds === undefined) return undefined;
  const ms = (value: number) => (value > 0 ? value * 1000 : undefined);
  return {
    method: "plugin",
    firstRecoverabilityPointMs: ms(firstSeconds),
    lastSuccessfulBackupMs: ms(lastSeconds),
  };
}
