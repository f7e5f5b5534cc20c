import type { Cluster } from "../../api/generated/cluster.ts";
import { refreshCertificates } from "../certificates.ts";
import { mySlotName, writeStandbyOverride } from "../configuration-files.ts";
import type { InstanceContext } from "../instance-context.ts";
import { identifyServer } from "../reconcile/source-server.ts";
import { SecretReader } from "../secret-reader.ts";
import { copyPrimary } from "./primary-copy.ts";
import { clearTarget, markCopy, unmarkCopy } from "./target-folder.ts";

/** Pauses between attempts to reach the server to clone. */
const firstPauseMs = 250;
const longestPauseMs = 5_000;
/** As long as an instance may take to start. */
const defaultStartDelaySeconds = 3_600;

/** Waits for the server to clone, for at most so long: a Job that waits for good tells nobody what is wrong. */
export async function waitForServer(
  context: InstanceContext,
  host: string,
  options: { limitMs: number; isThere?: () => Promise<unknown> },
): Promise<void> {
  const { logger, clock, settings } = context;
  const { isThere = () => identifyServer(context, { host, port: settings.primaryPort }) } = options;
  const end = clock.monotonicMs() + options.limitMs;
  let pauseMs = firstPauseMs;
  logger.info("Waiting for server to be available", { host, limitMs: options.limitMs });
  for (;;) {
    try {
      await isThere();
      return;
    } catch (error) {
      if (clock.monotonicMs() >= end) {
        const seconds = Math.round(options.limitMs / 1000);
        throw new Error(
          `${host} could not be reached for ${seconds} s (spec.startDelay): check that the cluster has a primary, that the ` +
            "Service leads to it and that the replication certificate is accepted",
          { cause: error },
        );
      }
      logger.info("The server does not answer yet", { host, error });
    }
    await clock.sleep(pauseMs);
    pauseMs = Math.min(longestPauseMs, pauseMs * 2);
  }
}

/** Clones the primary into a new standby's data folder (reference: instance manager §9.3). May be killed and run again at any point. */
export async function joinInstance(context: InstanceContext, cluster: Cluster): Promise<void> {
  const { files, paths, logger, settings } = context;
  const secrets = new SecretReader(context.kube, context.clock, settings.namespace);
  const certificates = await refreshCertificates(context, cluster, secrets);
  for (const problem of certificates.problems) logger.warning("A certificate file is missing", problem);
  const host = settings.parentNode ?? settings.primaryHost;
  await waitForServer(context, host, { limitMs: (cluster.spec.startDelay ?? defaultStartDelaySeconds) * 1000 });
  await clearTarget(context);
  await markCopy(context);
  await copyPrimary(context, { folder: paths.pgData, host, walFolder: settings.pgWal });
  await files.makeDirectory(paths.pgData, 0o700);
  await writeStandbyOverride(context, { slotName: mySlotName(context, cluster) });
  await files.writeAtomic(paths.standbySignal, "", 0o600);
  await unmarkCopy(context);
}
