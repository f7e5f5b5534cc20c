import type { KubeClient } from "../kube/kube-client.ts";
import type { RequestCount } from "../kube/request-counts.ts";
import type { Clock, Random } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import type { PodExec } from "../ports/pod-exec.ts";
import type { Failpoint } from "./failpoint.ts";
import type { OperatorIdentity } from "./operator-identity.ts";
import type { SettingSource } from "./settings.ts";

/** What the command line says (reference: cluster controller §9.1). */
export interface OperatorFlags {
  metricsAddress: { host?: string; port: number };
  leaderElect: boolean;
  leaderLeaseDurationMs: number;
  leaderRenewDeadlineMs: number;
  configMapName: string;
  secretName: string;
  webhookPort: number;
  maxConcurrentReconciles: number;
  logFieldLevel?: string;
  logFieldTimestamp?: string;
}

export interface OperatorOptions {
  flags: OperatorFlags;
  api: KubeClient;
  /** What `api` has sent so far, for the metrics. @default - not told */
  requestCounts?: () => readonly RequestCount[];
  /** Runs the instance managers' own commands in their pods. */
  exec: PodExec;
  clock: Clock;
  random: Random;
  logger: Logger;
  env: SettingSource;
  failpoint: Failpoint;
  /** What it proves itself with to instances. @default made anew */
  identity?: OperatorIdentity;
  /** Folders of the operator's image. @default "/runtime" and "/operator" */
  runtimeFolder?: string;
  operatorFolder?: string;
}
