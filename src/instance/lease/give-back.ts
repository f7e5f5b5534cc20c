import type { Lease } from "../../api/generated/kubernetes.ts";
import { formatMicroTime } from "../../api/micro-time.ts";
import { resources } from "../../kube/resources.ts";
import type { LeaseRecord } from "../../plan/instance/lease.ts";
import type { ReleaseNotice } from "../../plan/instance/release-notice.ts";
import { isKubeError } from "../../ports/kube-api.ts";
import type { Candidacy } from "./candidacy.ts";
import { readRecord, releasedLease } from "./lease-object.ts";
import type { PrimaryLeaseOptions } from "./options.ts";

type GiveBackOptions = PrimaryLeaseOptions & { candidacy: Candidacy };

/** What is known of the Lease that is given back. */
export interface HeldLease {
  /** As last read or written. */
  lease: Lease | undefined;
  record: LeaseRecord | undefined;
  /** Renew times of writes whose outcome is not known. */
  attempted: readonly string[];
  releasedDurationSeconds: number;
  /** Where the WAL of a primary ends that was stopped in order. */
  walEnd: string | undefined;
  /** Called with the record as it was released. */
  released: (record: LeaseRecord) => void;
}

/** Gives the Lease back by a write, and by telling the voters: the API server does not listen to a pod any more whose object is gone. */
export async function giveBack(options: GiveBackOptions, held: HeldLease): Promise<void> {
  const notice = releaseNotice(options, held);
  const voters = (held.record?.voters?.voters ?? []).filter((name) => name !== options.podName);
  await Promise.all([writeRelease(options, held), notice && options.tell?.(voters, notice)]);
}

function releaseNotice(options: GiveBackOptions, { record, attempted }: HeldLease): ReleaseNotice | undefined {
  const { namespace, clusterName, podName, podUid, candidacy } = options;
  if (!record || !candidacy.isOwn(record)) return undefined;
  const renewTimes = [...new Set([record.renewTime, ...attempted])];
  const cluster = `${namespace}/${clusterName}`;
  return { cluster, holder: podName, holderUID: podUid, transitions: record.transitions, renewTimes };
}

async function writeRelease(options: GiveBackOptions, held: HeldLease): Promise<void> {
  const { kube, clock, logger, namespace, clusterName, state, podName, podUid, candidacy } = options;
  for (let attempt = 1; attempt <= 3; attempt += 1) {
    try {
      const lease =
        attempt === 1 && held.lease
          ? held.lease
          : await kube.get(resources.leases, { namespace, name: clusterName }, { timeoutMs: 2_000 });
      const record = readRecord(lease);
      if (!candidacy.isOwn(record)) return;
      const released = releasedLease(lease, {
        holder: podName,
        holderUID: podUid,
        // The successor to be may be too young to be listed; with this write everybody's right is over anyway.
        voters: candidacy.voters(record, state.cluster?.status?.targetPrimary),
        durationSeconds: held.releasedDurationSeconds,
        walEnd: held.walEnd,
        now: formatMicroTime(clock.now()),
      });
      const limit = AbortSignal.timeout(3_000);
      held.released(readRecord(await kube.update(resources.leases, released, { signal: limit })));
      logger.info("Released the primary lease");
      return;
    } catch (error) {
      logger.warning("Could not release the primary lease", { error, attempt });
      if (isKubeError(error, "unavailable") && attempt > 1) return;
    }
  }
}
