import type { Cluster } from "../../api/generated/cluster.ts";
import type { ReleaseNotice } from "../../plan/instance/release-notice.ts";
import type { WriteRight } from "../../plan/instance/right-to-write.ts";
import type { Clock } from "../../ports/clock.ts";
import type { KubeApi } from "../../ports/kube-api.ts";
import type { Logger } from "../../ports/logger.ts";
import type { InstanceState } from "../instance-state.ts";

export type AcquireResult =
  | { kind: "held" }
  | { kind: "refused"; reason: string }
  | { kind: "timeout"; reason: string };

export interface PrimaryLeaseOptions {
  kube: KubeApi;
  /** Must count suspended time too. */
  clock: Clock;
  logger: Logger;
  state: InstanceState;
  podName: string;
  podUid: string;
  namespace: string;
  clusterName: string;
  /**
   * The right to write was proved anew or has other voters; called before anybody can make use of that, and no Lease is written
   * with other voters before it has resolved. `undefined`: it was given back, PostgreSQL is no primary. A rejection is the
   * writer's alone.
   */
  onRight?: (right: WriteRight | undefined) => Promise<void>;
  /** A Cluster was read that is newer than the shared copy. */
  onCluster?: (cluster: Cluster) => void;
  /**
   * Whether the Lease is held or wanted; called before a write that could take or renew it, and again once it was given back.
   */
  onEngaged?: (isEngaged: boolean) => Promise<void>;
  /** Tells other instances that PostgreSQL is down here; resolves when they know or the time for it is over. */
  tell?: (voters: readonly string[], notice: ReleaseNotice) => Promise<void>;
}
