import type { ReleaseNotice } from "../../plan/instance/release-notice.ts";
import type { InstanceContext } from "../instance-context.ts";
import { releasePath, tellPeer } from "./promise-client.ts";

/** How long the voters are told for: the kubelet may kill soon, and who does not hear of it waits for the Lease's end. */
const limitMs = 600;

/** Tells the voters that PostgreSQL is down here; each of them that can be reached may go on at once. */
export async function tellRelease(
  context: InstanceContext,
  voters: readonly string[],
  notice: ReleaseNotice,
): Promise<void> {
  const signal = AbortSignal.timeout(limitMs);
  const outcomes = await Promise.allSettled(
    voters.map((name) => tellPeer(context, { name, path: releasePath }, notice, signal)),
  );
  const silent = voters.filter((_, index) => outcomes[index]?.status === "rejected");
  context.logger.info("Told the other instances that PostgreSQL is down", { voters, silent });
}
