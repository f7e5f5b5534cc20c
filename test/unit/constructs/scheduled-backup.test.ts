import { expect, test } from "vitest";
import { checkManifest } from "../../../constructs/base/check-manifest.ts";

const aSchedule = (pluginConfiguration?: { name: string }) => ({
  apiVersion: "postgresql.cnpg.io/v1",
  kind: "ScheduledBackup",
  metadata: { name: "nightly", namespace: "shop" },
  spec: {
    cluster: { name: "db" },
    schedule: "0 0 3 * * *",
    method: "plugin",
    ...(pluginConfiguration ? { pluginConfiguration } : {}),
  },
});

test("a ScheduledBackup whose Backups would all be refused never reaches Git, although the API server would take it", () => {
  expect(checkManifest(aSchedule())).toEqual([
    'ScheduledBackup "nightly": spec.pluginConfiguration: Invalid value: null: cannot be empty when the backup method is plugin',
  ]);
  expect(checkManifest(aSchedule({ name: "barman-cloud.cloudnative-pg.io" }))).toEqual([]);
});
