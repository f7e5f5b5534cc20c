// Base backups and base restores by the archive engine, with what an ObjectStore says about them.
import { paths, roles } from "../../api/constants.ts";
import { childNames } from "../../api/names.ts";
import { switchWal } from "../../archive/base/switch-wal.ts";
import type { RestoreBaseBackup, TakeBaseBackup } from "../../archive/base/types.ts";
import { parseToolArguments } from "../../barman/tool-arguments.ts";
import type { BulkFiles } from "../../ports/bulk-files.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Files } from "../../ports/files.ts";
import type { Logger } from "../../ports/logger.ts";
import type { SqlConnector } from "../../ports/sql-session.ts";
import type { TreeFiles } from "../../ports/tree-files.ts";
import { StatusError } from "../framework/status-error.ts";
import type { TakeBackup } from "./backup-service.ts";
import { withBaseStatus } from "./base-failure.ts";
import type { RestoreBackup } from "./restore-service.ts";
import type { SidecarEnvironment } from "./sidecar-environment.ts";
import type { StoreAccess, StoreFacts } from "./store-access.ts";
import { withFreshCredentials } from "./wal-failure.ts";

export interface BaseEngineDeps {
  access: StoreAccess;
  tree: TreeFiles;
  files: Files;
  bulk: BulkFiles;
  clock: Clock;
  logger: Logger;
  sql: SqlConnector;
  environment: Pick<SidecarEnvironment, "socketHost" | "port" | "namespace" | "clusterName">;
  /** Where the instance manager keeps the certificates of standbys. @default /controller/certificates */
  replicationCertificates?: string;
  takeBaseBackup: TakeBaseBackup;
  restoreBaseBackup: RestoreBaseBackup;
  /** Ends what runs when the pod ends. */
  signal: AbortSignal;
}

/** The two halves, as the services want them. */
export function createBaseEngine(deps: BaseEngineDeps): { takeBackup: TakeBackup; restoreBackup: RestoreBackup } {
  const { access, tree, clock, logger, signal } = deps;
  return {
    takeBackup: (backupName, facts, store) =>
      withBaseStatus(() =>
        withFreshCredentials(access, facts, async () => {
          const ports = {
            store,
            tree,
            clock,
            logger,
            connect: (stop?: AbortSignal) => connect(deps, stop),
            switchPrimaryWal: (stop: AbortSignal) => switchPrimaryWal(deps, stop),
          };
          const { backupId, info } = await deps.takeBaseBackup(ports, {
            ...placeOf(facts),
            ...backupOptions(facts),
            backupName,
            signal,
          });
          return { id: backupId, info };
        }),
      ),
    restoreBackup: (backup, facts, store, { pgData, walFolder }) =>
      withBaseStatus(async () => {
        const jobs = parseToolArguments(facts.configuration.data?.restoreAdditionalCommandArgs).jobs;
        const request = { ...placeOf(facts), backupId: backup.id, dataFolder: pgData, jobs, signal };
        await deps.restoreBaseBackup({ store, tree, clock, logger }, request);
        if (walFolder !== undefined) await moveWal(`${pgData}/pg_wal`, walFolder, deps);
      }),
  };
}

function placeOf({ connection, serverName }: StoreFacts) {
  return { path: connection.destination.path, serverName };
}

function backupOptions({ configuration }: StoreFacts) {
  const { data, tags } = configuration;
  const extra = parseToolArguments(data?.additionalCommandArgs);
  return {
    immediateCheckpoint: data?.immediateCheckpoint,
    compression: data?.compression,
    jobs: data?.jobs ?? extra.jobs,
    tags,
    maxArchiveBytes: extra.maxArchiveBytes,
    minPartBytes: extra.minChunkBytes,
    maxBandwidthBytes: extra.maxBandwidthBytes,
  };
}

/** By the pod's own socket, where the operating system's user is who the server thinks it is. */
function connect({ sql, environment }: BaseEngineDeps, signal: AbortSignal | undefined) {
  const target = {
    host: environment.socketHost,
    port: environment.port,
    user: roles.superuser,
    database: "postgres",
    applicationName: "barman_cloud_backup",
  };
  return sql.connect(target, signal);
}

/** As standbys reach their primary; a standby cannot close a segment itself. */
async function switchPrimaryWal(deps: BaseEngineDeps, signal: AbortSignal): Promise<void> {
  const { files, sql, environment } = deps;
  const folder = deps.replicationCertificates ?? paths.certificates;
  const [ca, cert, key] = await Promise.all(
    ["server-ca.crt", "streaming_replica.crt", "streaming_replica.key"].map((name) => files.read(`${folder}/${name}`)),
  );
  if (!ca || !cert || !key) throw new Error(`${folder} does not hold the certificates of standbys`);
  const target = {
    host: `${childNames(environment.clusterName).rw}.${environment.namespace}.svc`,
    port: environment.port,
    user: roles.replication,
    database: "postgres",
    applicationName: "barman_cloud_backup",
    queryTimeoutMs: 30_000,
    tls: { ca, cert, key },
  };
  const session = await sql.connect(target, signal);
  try {
    await switchWal(session);
  } finally {
    await session.close();
  }
}

/** Brings the log onto its own volume and leaves a link, as the instance manager expects to find it. */
async function moveWal(from: string, to: string, { files, bulk, tree }: BaseEngineDeps): Promise<void> {
  if ((await tree.stat(from))?.kind === "symlink") return;
  await files.makeDirectory(to, 0o700);
  const move = async (source: string, target: string): Promise<void> => {
    for (const { name, kind } of (await tree.list(source)) ?? []) {
      const [old, moved] = [`${source}/${name}`, `${target}/${name}`];
      if (kind === "directory") {
        await files.makeDirectory(moved, 0o700);
        await move(old, moved);
      } else if (kind === "file") await bulk.move(old, moved);
      else throw new StatusError("FAILED_PRECONDITION", `${old} is neither a file nor a folder`);
    }
  };
  await move(from, to);
  await files.remove(from, { recursive: true });
  await files.symlink(to, from);
}
