import type { Cluster } from "../../api/generated/cluster.ts";
import { buildInitdbArguments } from "../../postgres/initdb-flags.ts";
import {
  writeCustomConf,
  writeEmptyOverride,
  writeImportOverride,
  writeStandbyOverride,
} from "../configuration-files.ts";
import type { InstanceContext } from "../instance-context.ts";
import { type PostInitOptions, runPostInit } from "./post-init.ts";
import { runTool } from "./run-tool.ts";
import { clearTarget } from "./target-folder.ts";
import { withTemporaryServer } from "./temporary-server.ts";

export interface InitOptions extends PostInitOptions {
  /** Shell-quoted flags for initdb. */
  initdbFlags: string | undefined;
}

async function runInitdb(context: InstanceContext, flags: string | undefined): Promise<void> {
  const { processes, logger, paths, settings } = context;
  const args = buildInitdbArguments({
    pgData: paths.pgData,
    ...(settings.pgWal === undefined ? {} : { walDir: settings.pgWal }),
    ...(flags === undefined ? {} : { flags }),
  });
  logger.info("Creating new data directory", { pgdata: paths.pgData, initDbOptions: args });
  const result = await processes.run("initdb", args, { umask: 0o077, env: { ...settings.environment } });
  const output = logger.child({ logger: "initdb" });
  for (const pipe of ["stdout", "stderr"] as const) if (result[pipe]) output.info(result[pipe], { pipe });
  if (result.code !== 0) {
    throw new Error(
      `initdb failed (${result.code ?? result.signal}): ${result.stderr.trim().split("\n").at(-1) ?? ""}`,
    );
  }
}

/** Makes a new data folder and fills it (reference: instance manager §9.2). May be killed and run again at any point. */
export async function initializeInstance(
  context: InstanceContext,
  cluster: Cluster,
  options: InitOptions,
): Promise<void> {
  const { files, paths, data } = context;
  const isImport = cluster.spec.bootstrap?.initdb?.import !== undefined;
  await clearTarget(context);
  await files.makeDirectory(paths.socketDir);
  await runInitdb(context, options.initdbFlags);
  await writeEmptyOverride(context);
  await writeCustomConf(context, cluster, { major: await data.major(), mode: "init" });
  if (isImport) await writeImportOverride(context);
  else await writeStandbyOverride(context, { slotName: undefined });
  await withTemporaryServer(context, async () => {
    await runPostInit(context, options);
    if (!isImport) return;
    const { importDatabases } = await import("./import.ts");
    await importDatabases(context, cluster);
  });
  if (!isImport) return;
  // PostgreSQL reads these lines only once there is a standby.signal.
  await writeStandbyOverride(context, { slotName: undefined });
  await runTool(context, "initdb", ["-D", paths.pgData, "--sync-only"]);
}
