import { expect, test } from "vitest";
import { type RecoveryTarget, recoveryTargetSettings } from "../../../../src/plan/instance/recovery-settings.ts";

test.each<[RecoveryTarget | undefined, Record<string, string>]>([
  [undefined, {}],
  [{ backupID: "x" }, { recovery_target_inclusive: "true" }],
  [
    { targetTime: "2026-01-02T03:04:05.25+02:00" },
    { recovery_target_time: "2026-01-02 01:04:05.250000+00:00", recovery_target_inclusive: "true" },
  ],
  [
    { targetTime: "1969-12-31T23:59:59.5Z" },
    { recovery_target_time: "1969-12-31 23:59:59.500000+00:00", recovery_target_inclusive: "true" },
  ],
  [
    { targetTime: "2026-01-02 03:04:05", exclusive: true },
    { recovery_target_time: "2026-01-02 03:04:05.000000+00:00", recovery_target_inclusive: "false" },
  ],
  [
    { targetXID: "42", targetTLI: "3" },
    { recovery_target_xid: "42", recovery_target_timeline: "3", recovery_target_inclusive: "true" },
  ],
  [
    { targetName: "n", exclusive: false },
    { recovery_target_name: "n", recovery_target_inclusive: "true" },
  ],
  [{ targetLSN: "0/3000028" }, { recovery_target_lsn: "0/3000028", recovery_target_inclusive: "true" }],
  [{ targetImmediate: true }, { recovery_target: "immediate", recovery_target_inclusive: "true" }],
])("the target %j is told to PostgreSQL", (target, expected) => {
  expect(Object.fromEntries(recoveryTargetSettings(target))).toEqual(expected);
});
