// The configuration of a data folder that came from elsewhere (reference: instance manager §9.4).
import type { Cluster } from "../../api/generated/cluster.ts";
import { stripFixedSettings } from "../../postgres/auto-conf.ts";
import { minimalHbaConf } from "../../postgres/hba-conf.ts";
import { buildIdentConf } from "../../postgres/ident-conf.ts";
import { writeCustomConf, writeEmptyOverride } from "../configuration-files.ts";
import type { InstanceContext } from "../instance-context.ts";
import { runTool } from "./run-tool.ts";

/** Settings beside those of the Cluster while a job works on the folder: certificates may be missing here. */
const jobSettings = { ssl: "off" } as const;

/** Replaces what the copied server was configured with by what a new one here would have. */
export async function writeInitialConfiguration(context: InstanceContext, cluster: Cluster): Promise<void> {
  const { files, paths } = context;
  const scratch = `${paths.scratch}/recovery`;
  const folder = `${scratch}/datadir_${context.clock.now()}`;
  await files.makeDirectory(scratch, 0o700);
  try {
    const args = ["--username", "postgres", "-D", folder, "--no-sync", "--auth", "reject"];
    await runTool(context, "initdb", args, { umask: 0o077 });
    const text = await files.read(`${folder}/postgresql.conf`);
    if (text === undefined) throw new Error(`initdb left no postgresql.conf in ${folder}`);
    await files.writeAtomic(paths.postgresqlConf, text, 0o600);
  } finally {
    await files.remove(folder, { recursive: true });
  }
  await stripAutoConf(context);
  await writeEmptyOverride(context);
  await writeJobConfiguration(context, cluster, {});
}

async function stripAutoConf({ files, paths, logger }: InstanceContext): Promise<void> {
  const { text, removed } = stripFixedSettings((await files.read(paths.autoConf)) ?? "");
  if (removed.length === 0) return;
  logger.warning("Removed settings of the copied server that the Cluster decides", { file: paths.autoConf, removed });
  await files.writeAtomic(paths.autoConf, text, 0o600);
}

/** Writes `custom.conf` with more settings, which the first reconciliation of the running instance takes away again. */
export async function writeJobConfiguration(
  context: InstanceContext,
  cluster: Cluster,
  more: Readonly<Record<string, string>>,
): Promise<void> {
  const overrides = { ...jobSettings, ...more };
  await writeCustomConf(context, cluster, { major: await context.data.major(), mode: "restore", overrides });
}

/** Lets nobody in but this process, over the socket. */
export async function writeMinimalAccess(context: InstanceContext): Promise<void> {
  await context.files.writeAtomic(context.paths.hba, minimalHbaConf, 0o600);
  await context.files.writeAtomic(context.paths.ident, buildIdentConf(context.systemUser), 0o600);
}
