import { describe, expect, it } from "vitest";
import { backupRpcs } from "../../../src/rpc/wire/backup.ts";
import { healthRpcs } from "../../../src/rpc/wire/health.ts";
import { identityRpcs } from "../../../src/rpc/wire/identity.ts";
import { lifecycleRpcs } from "../../../src/rpc/wire/lifecycle.ts";
import { metricsRpcs } from "../../../src/rpc/wire/metrics.ts";
import { operatorRpcs } from "../../../src/rpc/wire/operator.ts";
import { postgresRpcs } from "../../../src/rpc/wire/postgres.ts";
import { reconcilerRpcs } from "../../../src/rpc/wire/reconciler.ts";
import { restoreJobRpcs } from "../../../src/rpc/wire/restore-job.ts";
import { walRpcs } from "../../../src/rpc/wire/wal.ts";

describe("the paths of all calls", () => {
  it("are those of the protocol, two borrowed packages included", () => {
    const groups = [
      identityRpcs,
      operatorRpcs,
      lifecycleRpcs,
      reconcilerRpcs,
      walRpcs,
      backupRpcs,
      restoreJobRpcs,
      postgresRpcs,
      metricsRpcs,
      healthRpcs,
    ];
    expect(groups.flatMap((group) => Object.values(group).map(({ path }) => path))).toEqual([
      "/cnpgi.identity.v1.Identity/GetPluginMetadata",
      "/cnpgi.identity.v1.Identity/GetPluginCapabilities",
      "/cnpgi.identity.v1.Identity/Probe",
      "/cnpgi.operator.v1.Operator/GetCapabilities",
      "/cnpgi.operator.v1.Operator/ValidateClusterCreate",
      "/cnpgi.operator.v1.Operator/ValidateClusterChange",
      "/cnpgi.operator.v1.Operator/MutateCluster",
      "/cnpgi.operator.v1.Operator/SetStatusInCluster",
      "/cnpgi.operator.v1.Operator/Deregister",
      "/cnpgi.operator_lifecycle.v1.OperatorLifecycle/GetCapabilities",
      "/cnpgi.operator_lifecycle.v1.OperatorLifecycle/LifecycleHook",
      "/cnpgi.reconciler.v1.ReconcilerHooks/GetCapabilities",
      "/cnpgi.reconciler.v1.ReconcilerHooks/Pre",
      "/cnpgi.reconciler.v1.ReconcilerHooks/Post",
      "/cnpgi.wal.v1.WAL/GetCapabilities",
      "/cnpgi.wal.v1.WAL/Archive",
      "/cnpgi.wal.v1.WAL/Restore",
      "/cnpgi.wal.v1.WAL/Status",
      "/cnpgi.wal.v1.WAL/SetFirstRequired",
      "/cnpgi.backup.v1.Backup/GetCapabilities",
      "/cnpgi.backup.v1.Backup/Backup",
      "/cnpgi.wal.v1.RestoreJobHooks/GetCapabilities",
      "/cnpgi.wal.v1.RestoreJobHooks/Restore",
      "/cnpgi.identity.v1.Postgres/GetCapabilities",
      "/cnpgi.identity.v1.Postgres/EnrichConfiguration",
      "/cnpgi.metrics.v1.Metrics/GetCapabilities",
      "/cnpgi.metrics.v1.Metrics/Define",
      "/cnpgi.metrics.v1.Metrics/Collect",
      "/grpc.health.v1.Health/Check",
    ]);
  });
});
