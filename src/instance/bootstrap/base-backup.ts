// `instance pgbasebackup`: a new cluster as the copy of a server that runs elsewhere (reference: instance manager §9.4).
import type { Cluster } from "../../api/generated/cluster.ts";
import type { InstanceContext } from "../instance-context.ts";
import { finishConfiguration, finishCopy } from "./finish-recovery.ts";
import { writeJobConfiguration, writeMinimalAccess } from "./initial-configuration.ts";
import { runTool } from "./run-tool.ts";
import { openSource, waitForSource } from "./source-connection.ts";
import { clearTarget, markCopy, unmarkCopy } from "./target-folder.ts";

/** Copies the source, then makes it a cluster of its own, or a standby of the source for a replica cluster. */
export async function copyInstance(context: InstanceContext, cluster: Cluster): Promise<void> {
  const { files, paths, settings } = context;
  const name = cluster.spec.bootstrap?.pg_basebackup?.source;
  if (!name) throw new Error("spec.bootstrap.pg_basebackup.source is not set");
  const source = await openSource(context, cluster, name, "spec.bootstrap.pg_basebackup.source");
  await waitForSource(context, source, { replication: true });
  await clearTarget(context);
  await markCopy(context, "recovery");
  const conninfo = source.conninfo({ options: "-c wal_sender_timeout=0s" });
  const waldir = settings.pgWal === undefined ? [] : ["--waldir", settings.pgWal];
  await runTool(context, "pg_basebackup", ["-D", paths.pgData, "-v", "-w", "-d", conninfo, ...waldir], {
    env: source.environment,
  });
  await files.makeDirectory(paths.pgData, 0o700);
  await files.remove(paths.standbySignal);
  if ((await finishCopy(context, cluster)) === "primary") {
    await writeMinimalAccess(context);
    await writeJobConfiguration(context, cluster, { archive_command: "false" });
    // No target and no archive: the WAL that came with the copy makes it consistent.
    await finishConfiguration(context, cluster);
  }
  await unmarkCopy(context);
}
