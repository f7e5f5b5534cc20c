import { Command } from "commander";
import { ports } from "../api/constants.ts";
import { type KubeConnection, loadInClusterConnection } from "../kube/connection.ts";
import { createKubeApi } from "../kube/create-kube-api.ts";
import { loadKubeconfigConnection } from "../kube/kubeconfig.ts";
import { createRequestCounts } from "../kube/request-counts.ts";
import { parseFailpoint } from "../operator/failpoint.ts";
import { runOperator } from "../operator/main.ts";
import type { OperatorFlags } from "../operator/operator-options.ts";
import type { LogLevel } from "../ports/logger.ts";
import type { PodExec } from "../ports/pod-exec.ts";
import { createLogger } from "../runtime/logger.ts";
import { logProcessWarnings } from "../runtime/process-warnings.ts";
import { profiled } from "../runtime/profiled.ts";
import { runUntilSignal } from "../runtime/shutdown.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { systemRandom } from "../runtime/system-random.ts";

interface ParsedFlags {
  metricsBindAddress: string;
  leaderElect: boolean;
  leaderLeaseDuration: string;
  leaderRenewDeadline: string;
  configMapName: string;
  secretName: string;
  webhookPort: string;
  pprofServer: boolean;
  maxConcurrentReconciles: string;
  logLevel: string;
  logDestination: string;
  logFieldLevel: string;
  logFieldTimestamp: string;
  kubeconfig?: string;
}

const command = new Command("controller")
  .description("Run the operator")
  .option("--metrics-bind-address <address>", "address of the metrics endpoint", ":8080")
  .option("--leader-elect", "act only as the elected leader", false)
  .option("--leader-lease-duration <seconds>", "time after which a silent leader is replaced", "15")
  .option("--leader-renew-deadline <seconds>", "time after which a leader that cannot renew gives up", "10")
  .option("--config-map-name <name>", "ConfigMap with settings in the operator's namespace", "")
  .option("--secret-name <name>", "Secret with settings in the operator's namespace", "")
  .option("--webhook-port <port>", "port of the webhooks and of /readyz", "9443")
  .option("--pprof-server", "serve profiles of this process on port 6060", false)
  .option("--max-concurrent-reconciles <count>", "clusters worked on at the same time", "10")
  .option("--log-level <level>", "error, warning, info, debug or trace", "info")
  .option("--log-destination <file>", "file to append the log to instead of standard error", "")
  .option("--log-field-level <name>", "key of the level in log records", "")
  .option("--log-field-timestamp <name>", "key of the time in log records", "")
  .option("--kubeconfig <file>", "reach the API server by this file instead of the service account");

const argv = process.argv.slice(2);
const parsed = command.parse(argv[0] === "controller" ? argv.slice(1) : argv, { from: "user" }).opts<ParsedFlags>();

const levels: readonly LogLevel[] = ["error", "warning", "info", "debug", "trace"];
const logger = createLogger({
  level: levels.find((it) => it === parsed.logLevel) ?? "info",
  fieldLevel: parsed.logFieldLevel,
  fieldTimestamp: parsed.logFieldTimestamp,
  ...(parsed.logDestination ? { destination: parsed.logDestination } : {}),
});
logProcessWarnings(logger);

const flags: OperatorFlags = {
  metricsAddress: parseAddress(parsed.metricsBindAddress),
  leaderElect: parsed.leaderElect,
  leaderLeaseDurationMs: Number(parsed.leaderLeaseDuration) * 1_000,
  leaderRenewDeadlineMs: Number(parsed.leaderRenewDeadline) * 1_000,
  configMapName: parsed.configMapName,
  secretName: parsed.secretName,
  webhookPort: Number(parsed.webhookPort),
  maxConcurrentReconciles: Number(parsed.maxConcurrentReconciles),
  logFieldLevel: parsed.logFieldLevel,
  logFieldTimestamp: parsed.logFieldTimestamp,
};

void runUntilSignal(runProgram, { logger }).then((code) => {
  process.exitCode = code;
});

async function runProgram(signal: AbortSignal): Promise<void> {
  const connection = parsed.kubeconfig
    ? loadKubeconfigConnection(parsed.kubeconfig)
    : loadInClusterConnection({ clock: systemClock });
  const counts = createRequestCounts();
  const api = createKubeApi(connection, { userAgent: "cloudnative-pg", counts });
  try {
    const failpoint = parseFailpoint(process.env["CNPG_TS_FAILPOINT"], (code) => process.exit(code));
    const options = {
      flags,
      api,
      requestCounts: counts.list,
      exec: lazyPodExec(connection),
      clock: systemClock,
      random: systemRandom,
      logger,
      env: process.env,
      failpoint,
    };
    const port = Number(process.env["CNPG_TS_PPROF_PORT"] || ports.pprof);
    await profiled(parsed.pprofServer ? { port, clock: systemClock, logger } : undefined, () =>
      runOperator(options, signal),
    );
  } finally {
    await api.close();
  }
}

/** WebSockets take megabytes, and most operators seldom start a backup. */
function lazyPodExec(connection: KubeConnection): PodExec {
  return {
    run: async (...args) => (await import("../kube/pod-exec.ts")).createPodExec(connection).run(...args),
  };
}

function parseAddress(text: string): { host?: string; port: number } {
  const colon = text.lastIndexOf(":");
  const host = text.slice(0, Math.max(colon, 0)).replace(/^\[|\]$/g, "");
  const port = Number(text.slice(colon + 1));
  if (!Number.isInteger(port)) throw new Error(`--metrics-bind-address "${text}" is no address: use [host]:port`);
  return host ? { host, port } : { port };
}
