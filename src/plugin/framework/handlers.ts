// From the author's services to the calls of the protocol, capabilities included.
import { bindHandler, type Handler } from "../../rpc/server.ts";
import { backupRpcs } from "../../rpc/wire/backup.ts";
import { healthRpcs } from "../../rpc/wire/health.ts";
import { identityRpcs } from "../../rpc/wire/identity.ts";
import { lifecycleRpcs } from "../../rpc/wire/lifecycle.ts";
import { metricsRpcs } from "../../rpc/wire/metrics.ts";
import { operatorRpcs } from "../../rpc/wire/operator.ts";
import { postgresRpcs } from "../../rpc/wire/postgres.ts";
import { reconcilerRpcs } from "../../rpc/wire/reconciler.ts";
import { restoreJobRpcs } from "../../rpc/wire/restore-job.ts";
import { walRpcs } from "../../rpc/wire/wal.ts";
import { compileMetadata, listServices, type PluginIdentityOptions } from "./identity.ts";
import { encodeJsonPatch } from "./json-patch.ts";
import type {
  LifecycleService,
  MetricsService,
  OperatorService,
  PluginServices,
  ReconcilerAnswer,
  ReconcilerService,
  WalService,
} from "./services.ts";

/** Every handler of a plugin: identity and health always, then the services it has. */
export function buildHandlers(identity: PluginIdentityOptions, services: PluginServices): Handler[] {
  const { operator, lifecycle, reconciler, wal, backup, restoreJob, postgres, metrics } = services;
  return [
    ...identityHandlers(identity, services),
    ...(operator ? operatorHandlers(operator) : []),
    ...(lifecycle ? lifecycleHandlers(lifecycle) : []),
    ...(reconciler ? reconcilerHandlers(reconciler) : []),
    ...(wal ? walHandlers(wal) : []),
    ...(backup
      ? [
          bindHandler(backupRpcs.getCapabilities, () => ["TYPE_BACKUP"]),
          bindHandler(backupRpcs.backup, (request, context) => backup.backup(request, context)),
        ]
      : []),
    ...(restoreJob
      ? [
          bindHandler(restoreJobRpcs.getCapabilities, () => ["KIND_RESTORE"]),
          bindHandler(restoreJobRpcs.restore, (request, context) => restoreJob.restore(request, context)),
        ]
      : []),
    ...(postgres
      ? [
          bindHandler(postgresRpcs.getCapabilities, () => ["TYPE_ENRICH_CONFIGURATION"]),
          bindHandler(postgresRpcs.enrichConfiguration, (request, context) =>
            postgres.enrichConfiguration(request, context),
          ),
        ]
      : []),
    ...(metrics ? metricsHandlers(metrics) : []),
  ];
}

function identityHandlers(identity: PluginIdentityOptions, services: PluginServices): Handler[] {
  const metadata = compileMetadata(identity);
  const claimed = listServices(identity, services);
  const ready = async () => (await identity.ready?.()) ?? true;
  return [
    bindHandler(identityRpcs.getPluginMetadata, () => metadata),
    bindHandler(identityRpcs.getPluginCapabilities, () => claimed),
    bindHandler(identityRpcs.probe, ready),
    bindHandler(healthRpcs.check, async () => ((await ready()) ? ("serving" as const) : ("notServing" as const))),
  ];
}

function operatorHandlers(service: OperatorService): Handler[] {
  const names = offered([
    [service.validateClusterCreate, "TYPE_VALIDATE_CLUSTER_CREATE"],
    [service.validateClusterChange, "TYPE_VALIDATE_CLUSTER_CHANGE"],
    [service.mutateCluster, "TYPE_MUTATE_CLUSTER"],
    [service.setStatusInCluster, "TYPE_SET_STATUS_IN_CLUSTER"],
    [service.deregister, "TYPE_DEREGISTER"],
  ]);
  // A call outside of the capabilities gets the answer that changes nothing: nobody should make it.
  return [
    bindHandler(operatorRpcs.getCapabilities, () => names),
    bindHandler(
      operatorRpcs.validateClusterCreate,
      async (cluster, context) => (await service.validateClusterCreate?.(cluster, context)) ?? [],
    ),
    bindHandler(
      operatorRpcs.validateClusterChange,
      async (clusters, context) => (await service.validateClusterChange?.(clusters, context)) ?? [],
    ),
    bindHandler(operatorRpcs.mutateCluster, async (cluster, context) =>
      encodeJsonPatch(await service.mutateCluster?.(cluster, context)),
    ),
    bindHandler(operatorRpcs.setStatusInCluster, async (cluster, context) => {
      const status = await service.setStatusInCluster?.(cluster, context);
      return status === undefined ? "" : JSON.stringify(status);
    }),
    bindHandler(operatorRpcs.deregister, async (cluster, context) => {
      await service.deregister?.(cluster, context);
      return undefined;
    }),
  ];
}

function lifecycleHandlers(service: LifecycleService): Handler[] {
  return [
    bindHandler(lifecycleRpcs.getCapabilities, () => service.capabilities),
    bindHandler(lifecycleRpcs.hook, async (request, context) => encodeJsonPatch(await service.hook(request, context))),
  ];
}

function reconcilerHandlers(service: ReconcilerService): Handler[] {
  const kinds = service.kinds.map((kind) => (kind === "Cluster" ? "KIND_CLUSTER" : "KIND_BACKUP"));
  const complete = (answer: ReconcilerAnswer) => ({
    behavior: answer?.behavior ?? ("continue" as const),
    requeueAfterSeconds: answer?.behavior === "requeue" ? answer.requeueAfterSeconds : 0,
  });
  return [
    bindHandler(reconcilerRpcs.getCapabilities, () => kinds),
    bindHandler(reconcilerRpcs.pre, async (request, context) => complete(await service.pre?.(request, context))),
    bindHandler(reconcilerRpcs.post, async (request, context) => complete(await service.post?.(request, context))),
  ];
}

function walHandlers(service: WalService): Handler[] {
  const names = offered([
    [service.archive, "TYPE_ARCHIVE_WAL"],
    [service.restore, "TYPE_RESTORE_WAL"],
    [service.status, "TYPE_STATUS"],
    [service.setFirstRequired, "TYPE_SET_FIRST_REQUIRED"],
  ]);
  const { archive, restore, status, setFirstRequired } = service;
  // Here a method that is missing stays unimplemented: an empty answer would claim that a file is safe.
  return [
    bindHandler(walRpcs.getCapabilities, () => names),
    ...(archive
      ? [
          bindHandler(walRpcs.archive, async (request, context) => {
            await archive.call(service, request, context);
            return undefined;
          }),
        ]
      : []),
    ...(restore
      ? [
          bindHandler(walRpcs.restore, async (request, context) => {
            await restore.call(service, request, context);
            return undefined;
          }),
        ]
      : []),
    ...(status ? [bindHandler(walRpcs.status, (cluster, context) => status.call(service, cluster, context))] : []),
    ...(setFirstRequired
      ? [
          bindHandler(walRpcs.setFirstRequired, async (request, context) => {
            await setFirstRequired.call(service, request, context);
            return undefined;
          }),
        ]
      : []),
  ];
}

function metricsHandlers(service: MetricsService): Handler[] {
  return [
    bindHandler(metricsRpcs.getCapabilities, () => ["TYPE_METRICS"]),
    bindHandler(metricsRpcs.define, (cluster, context) => service.define(cluster, context)),
    bindHandler(metricsRpcs.collect, (cluster, context) => service.collect(cluster, context)),
  ];
}

function offered(methods: readonly [unknown, string][]): string[] {
  return methods.filter(([method]) => method !== undefined).map(([, name]) => name);
}
