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

async function waitForServer(context: InstanceContext, host: string): Promise<void> {
  const { logger, clock, settings } = context;
  let pauseMs = firstPauseMs;
  logger.info("Waiting for server to be available", { host });
  for (;;) {
    try {
      await identifyServer(context, { host, port: settings.primaryPort });
      return;
    } catch (error) {
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
  await waitForServer(context, host);
  await clearTarget(context);
  await markCopy(context);
  await copyPrimary(context, { folder: paths.pgData, host, walFolder: settings.pgWal });
  await files.makeDirectory(paths.pgData, 0o700);
  await writeStandbyOverride(context, { slotName: mySlotName(context, cluster) });
  await files.writeAtomic(paths.standbySignal, "", 0o600);
  await unmarkCopy(context);
}
