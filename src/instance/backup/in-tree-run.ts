// A base backup into the object store that the Cluster itself describes. Load by a dynamic import: it brings the engine with it.

import { roles } from "../../api/constants.ts";
import { switchWal } from "../../archive/base/switch-wal.ts";
import { takeBaseBackup } from "../../archive/base/take-base-backup.ts";
import type { BaseBackupResult } from "../../archive/base/types.ts";
import { parseToolArguments } from "../../barman/tool-arguments.ts";
import type { CompletedBackup } from "../../plan/instance/backup.ts";
import type { InTreeArchive } from "../../plan/instance/wal-sources.ts";
import { createTreeFiles } from "../../store/tree-files.ts";
import type { InstanceContext } from "../instance-context.ts";
import type { ArchivePlaces, PlaceFacts } from "../wal/archive-places.ts";
import { onPrimary } from "./primary-session.ts";

/** Takes the backup; resolves when the archive holds it and all WAL that it needs. */
export async function runInTreeBackup(
  context: InstanceContext,
  places: ArchivePlaces,
  options: { archive: InTreeArchive; backupName: string; signal: AbortSignal },
): Promise<CompletedBackup> {
  const { clock, logger } = context;
  const { backupName, signal } = options;
  const facts = await places.describe(options.archive);
  const store = await places.open(facts, "data");
  try {
    const result = await takeBaseBackup(
      {
        store,
        tree: createTreeFiles(),
        clock,
        logger: logger.child({ logger: "barman-cloud-backup", backupName, serverName: facts.serverName }),
        connect: (stop) => connect(context, stop),
        switchPrimaryWal: (stop) => onPrimary(context, switchWal, stop),
      },
      { ...engineOptions(facts), backupName, signal },
    );
    return completed(result);
  } finally {
    store.close();
  }
}

/** Without any limit of time: a checkpoint that is spread out and the copy itself take what they take. */
function connect(context: InstanceContext, signal: AbortSignal | undefined) {
  const target = {
    host: context.paths.socketDir,
    port: context.settings.postgresPort,
    user: roles.superuser,
    database: "postgres",
    applicationName: "barman_cloud_backup",
    connectTimeoutMs: 10_000,
  };
  return context.sql.connect(target, signal);
}

function engineOptions({ configuration, connection, serverName }: PlaceFacts) {
  const { data, tags } = configuration;
  const extra = parseToolArguments(data?.additionalCommandArgs);
  return {
    path: connection.destination.path,
    serverName,
    immediateCheckpoint: data?.immediateCheckpoint,
    compression: data?.compression,
    jobs: data?.jobs ?? extra.jobs,
    tags,
    maxArchiveBytes: extra.maxArchiveBytes,
    minPartBytes: extra.minChunkBytes,
    maxBandwidthBytes: extra.maxBandwidthBytes,
  };
}

function completed(result: BaseBackupResult): CompletedBackup {
  const { backupId, backupName, startedAtMs, stoppedAtMs, beginWal, endWal, beginLsn, endLsn } = result;
  return { backupId, backupName, startedAtMs, stoppedAtMs, beginWal, endWal, beginLsn, endLsn };
}
