import { expect, test, vi } from "vitest";
import type { Backup } from "../../../src/api/generated/backup.ts";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import { BackupRunner } from "../../../src/instance/backup/backup-runner.ts";
import type { InstanceContext } from "../../../src/instance/instance-context.ts";
import { resources } from "../../../src/kube/resources.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { createFakeKubeApi } from "../../support/fake-kube-api.ts";
import { captureLogs } from "../../support/log-capture.ts";

const key = { namespace: "ns", name: "nightly" };

test("every line about a backup that fails tells name and namespace of its object, and the Backup why", async () => {
  const clock = createFakeClock();
  const kube = createFakeKubeApi({ clock });
  kube.seed(resources.backups, {
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Backup",
    metadata: { ...key },
    spec: { cluster: { name: "c" }, method: "plugin", pluginConfiguration: { name: "p" } },
    status: { phase: "started", instanceID: { podName: "c-1" } },
  } as Backup);
  const logs = captureLogs();
  const cluster = { metadata: { name: "c" }, spec: {}, status: {} } as unknown as Cluster;
  const context = {
    settings: { podName: "c-1", namespace: "ns" },
    state: { cluster },
    kube,
    clock,
    logger: logs.logger,
  };
  const runner = new BackupRunner({
    context: context as unknown as InstanceContext,
    plugins: { names: async () => [], use: () => Promise.reject(new Error("not asked")), close: async () => undefined },
    status: { setCondition: async () => undefined, update: async () => undefined },
    events: { record: () => undefined },
    inTree: () => Promise.reject(new Error("not asked")),
  });
  expect(await runner.start("nightly")).toMatchObject({ status: 200 });
  await vi.waitFor(() => expect(kube.peek(resources.backups, key)?.status?.phase).toBe("failed"), 10_000);
  const told = logs.records.filter(({ fields }) => fields["logger"] === "backup");
  expect(told.map(({ message }) => message)).toEqual(["Backup failed"]);
  for (const { fields } of told) expect(fields).toMatchObject({ backupName: "nightly", backupNamespace: "ns" });
  expect(kube.peek(resources.backups, key)?.status?.error).toBe("requested plugin is not available: p");
  await runner.close();
});
