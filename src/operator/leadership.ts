import { hostname } from "node:os";
import { createLeaderElector } from "../kube/leader-elector.ts";
import type { ProgramMetrics } from "../runtime/program-metrics.ts";
import type { Runnable } from "../runtime/runnable.ts";
import type { OperatorOptions } from "./operator-options.ts";
import type { OperatorSettings } from "./settings.ts";
import { untilAborted } from "./until-aborted.ts";

const leaderLease = "db9c8771.cnpg.io";

/** Calls back once this process may act: at once without election, else when it holds the Lease, which the metrics tell. */
export function createLeadership(
  options: OperatorOptions,
  settings: OperatorSettings,
  onStarted: () => void,
  metrics: Pick<ProgramMetrics, "forLeadership">,
): Runnable {
  const { api, clock, logger, flags, random } = options;
  const namespace = settings.context.operatorNamespace;
  if (!flags.leaderElect || !namespace) {
    return {
      name: "leadership without election",
      async run(stop) {
        onStarted();
        await untilAborted(stop);
      },
    };
  }
  const tell = metrics.forLeadership(leaderLease);
  const identity = `${hostname()}_${Buffer.from(random.bytes(8)).toString("hex")}`;
  return createLeaderElector({
    api,
    namespace,
    name: leaderLease,
    identity,
    clock,
    random,
    logger,
    leaseDurationMs: flags.leaderLeaseDurationMs,
    renewDeadlineMs: flags.leaderRenewDeadlineMs,
    onStarted: () => {
      tell(true);
      onStarted();
    },
    onStopped: () => tell(false),
  });
}
