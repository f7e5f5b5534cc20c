import type { PostmasterHost } from "../ports/postmaster-host.ts";
import { DirectHost } from "../process/direct-host.ts";
import { openLauncherChannel } from "../process/launcher-channel.ts";
import { collectAtOnce } from "../runtime/collect-at-once.ts";
import { profiled } from "../runtime/profiled.ts";
import { systemClock } from "../runtime/system-clock.ts";
import type { InitOptions } from "./bootstrap/init.ts";
import type { SnapshotOptions } from "./bootstrap/restore-snapshot.ts";
import { createInstanceContext, waitForCluster } from "./connect.ts";
import type { InstanceContext } from "./instance-context.ts";
import { createLogPipes } from "./log/log-pipes.ts";
import { createLogOutput, type LogFlags, type LogOutput } from "./logging.ts";
import { compileInstanceSettings, type InstanceFlags, type InstanceSettings } from "./settings.ts";
import { quitSidecars } from "./sidecars.ts";

/** The postmaster's parent: the launcher when it handed over its channel, else this very process. */
function openHost(settings: InstanceSettings, output: LogOutput): PostmasterHost {
  const fd = settings.environment["CNPG_LAUNCHER_FD"];
  if (fd) return openLauncherChannel(Number(fd));
  const postgres = output.logger.child({ logger: "postgres" });
  return new DirectHost(
    (pipe, line) => postgres.info(line, { pipe }),
    (code) => process.exit(code),
  );
}

/** `instance run` */
export async function runCommand(flags: InstanceFlags & LogFlags): Promise<void> {
  const settings = compileInstanceSettings(flags, process.env);
  const output = createLogOutput(flags, settings.podName);
  const { runInstance } = await import("./run.ts");
  const { pprofPort: port } = settings;
  const logger = output.logger.child({ logger: "pprof" });
  // The original listens on all interfaces, where anyone in the cluster can slow an instance down.
  const profiler = port === undefined ? undefined : { host: "127.0.0.1", port, clock: systemClock, logger };
  await profiled(profiler, () => runInstance(settings, openHost(settings, output), output));
}

/** Runs a bootstrap job: its PostgreSQL logs through the same pipes as an instance's. */
async function runJob(
  flags: InstanceFlags & LogFlags,
  work: (context: InstanceContext, cluster: Awaited<ReturnType<typeof waitForCluster>>) => Promise<void>,
): Promise<void> {
  const settings = compileInstanceSettings(flags, process.env);
  const output = createLogOutput(flags, settings.podName);
  const context = await createInstanceContext(settings, output.logger);
  const cluster = await waitForCluster(context);
  context.state.cluster = cluster;
  await context.files.makeDirectory(context.paths.log, 0o700);
  await context.files.makeDirectory(context.paths.tmp);
  const stop = new AbortController();
  const pipes = createLogPipes({
    logDir: context.paths.log,
    logger: output.logger,
    write: output.writeLine,
    format: output.format,
    signal: stop.signal,
  });
  await pipes.start();
  try {
    await work(context, cluster);
  } catch (error) {
    output.logger.error("The job failed", { error });
    throw error;
  } finally {
    stop.abort();
    await pipes.done;
    output.flush();
    await context.kube.close();
  }
  await quitSidecars();
}

/** `instance init` */
export function initCommand(flags: InstanceFlags & LogFlags, options: InitOptions): Promise<void> {
  return runJob(flags, async (context, cluster) => {
    const { initializeInstance } = await import("./bootstrap/init.ts");
    await initializeInstance(context, cluster, options);
  });
}

/** `instance join` */
export function joinCommand(flags: InstanceFlags & LogFlags): Promise<void> {
  return runJob(flags, async (context, cluster) => {
    const { joinInstance } = await import("./bootstrap/join.ts");
    await joinInstance(context, cluster);
  });
}

/** `instance pgbasebackup` */
export function pgBaseBackupCommand(flags: InstanceFlags & LogFlags): Promise<void> {
  return runJob(flags, async (context, cluster) => {
    const { copyInstance } = await import("./bootstrap/base-backup.ts");
    await copyInstance(context, cluster);
  });
}

/** `instance restore` */
export function restoreCommand(flags: InstanceFlags & LogFlags): Promise<void> {
  collectAtOnce();
  return runJob(flags, async (context, cluster) => {
    const { restoreInstance } = await import("./bootstrap/restore.ts");
    await restoreInstance(context, cluster);
  });
}

/** `instance restoresnapshot` */
export function restoreSnapshotCommand(flags: InstanceFlags & LogFlags, options: SnapshotOptions): Promise<void> {
  return runJob(flags, async (context, cluster) => {
    const { restoreSnapshot } = await import("./bootstrap/restore-snapshot.ts");
    await restoreSnapshot(context, cluster, options);
  });
}
