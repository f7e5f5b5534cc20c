import { expect, test } from "vitest";
import { readPluginWindow } from "../../../../src/plan/instance/plugin-window.ts";

const first = "barman_cloud_cloudnative_pg_io_first_recoverability_point";
const last = "barman_cloud_cloudnative_pg_io_last_available_backup_timestamp";

test.each<[string, { name: string; value: number }[], object | undefined]>([
  ["another plugin", [{ name: "other", value: 1 }], undefined],
  ["half of it", [{ name: first, value: 1 }], undefined],
  [
    "an empty archive",
    [
      { name: first, value: 0 },
      { name: last, value: 0 },
    ],
    { method: "plugin", firstRecoverabilityPointMs: undefined, lastSuccessfulBackupMs: undefined },
  ],
  [
    "a window",
    [
      { name: first, value: 10 },
      { name: last, value: 20 },
    ],
    { method: "plugin", firstRecoverabilityPointMs: 10_000, lastSuccessfulBackupMs: 20_000 },
  ],
])("%s", (_name, samples, expected) => {
  expect(readPluginWindow(samples)).toEqual(expected);
});
