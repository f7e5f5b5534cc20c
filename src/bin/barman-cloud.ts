import { Command, CommanderError } from "commander";
import { ports } from "../api/constants.ts";
import type { LogLevel } from "../ports/logger.ts";
import { collectAtOnce } from "../runtime/collect-at-once.ts";
import { createLogger } from "../runtime/logger.ts";
import { logProcessWarnings } from "../runtime/process-warnings.ts";
import { profiled } from "../runtime/profiled.ts";
import type { ProfilerOptions } from "../runtime/profiler.ts";
import { runUntilSignal } from "../runtime/shutdown.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { systemRandom } from "../runtime/system-random.ts";

interface LogFlags {
  logLevel: string;
  logDestination: string;
  logFieldLevel: string;
  logFieldTimestamp: string;
  kubeconfig?: string;
}

interface OperatorFlags extends LogFlags {
  metricsBindAddress: string;
  metricsSecure: boolean;
  healthProbeBindAddress: string;
  leaderElect: boolean;
  pluginPath?: string;
  serverCert?: string;
  serverKey?: string;
  clientCert?: string;
  serverAddress?: string;
  certificatesService?: string;
}

interface SidecarFlags extends LogFlags {
  metricsBindAddress: string;
  /** On without a word more, or with an address. */
  pprofServer: boolean | string;
}

const levels: readonly LogLevel[] = ["error", "warning", "info", "debug", "trace"];

/** Flags that every command has. */
function addCommonFlags(command: Command): Command {
  return command
    .option("--log-level <level>", "error, warning, info, debug or trace", "info")
    .option("--log-destination <file>", "file to append the log to instead of standard error", "")
    .option("--log-field-level <name>", "key of the level in log records", "")
    .option("--log-field-timestamp <name>", "key of the time in log records", "")
    .option("--kubeconfig <file>", "reach the API server by this file instead of the service account");
}

function loggerFor(flags: LogFlags, pod?: string) {
  const logger = createLogger({
    level: levels.find((it) => it === flags.logLevel) ?? "info",
    fieldLevel: flags.logFieldLevel,
    fieldTimestamp: flags.logFieldTimestamp,
    ...(flags.logDestination ? { destination: flags.logDestination } : {}),
    ...(pod ? { pod } : {}),
  });
  logProcessWarnings(logger);
  return logger;
}

/** Imported when a command needs it: the probe, which runs each second while a pod starts, does not. */
async function connect(kubeconfig: string | undefined) {
  const { createKubeApi } = await import("../kube/create-kube-api.ts");
  const connection = kubeconfig
    ? (await import("../kube/kubeconfig.ts")).loadKubeconfigConnection(kubeconfig)
    : (await import("../kube/connection.ts")).loadInClusterConnection({ clock: systemClock });
  const counts = (await import("../kube/request-counts.ts")).createRequestCounts();
  const api = createKubeApi(connection, { userAgent: "plugin-barman-cloud", counts });
  return { api, requests: counts.list, namespace: process.env["POD_NAMESPACE"] || connection.namespace || "" };
}

function addOperator(program: Command, done: (code: number) => void): void {
  addCommonFlags(program.command("operator").description("answer the operator's calls for all clusters"))
    .option("--metrics-bind-address <address>", "address of /metrics; 0 for none", "0")
    .option("--metrics-secure [value]", "serve metrics by TLS, to those whom the API server allows it", isOn, true)
    .option("--enable-http2 [value]", "accepted for compatibility")
    .option("--debug [value]", "accepted for compatibility; --log-level says how much is told")
    .option("--health-probe-bind-address <address>", "address of /healthz and /readyz; 0 for none", ":8081")
    .option("--leader-elect [value]", "follow ObjectStores only as the elected leader", isOn, false)
    .option("--plugin-path <folder>", "folder for a unix socket to listen on")
    .option("--server-address <address>", "TCP address to listen on")
    .option("--server-cert <file>", "the server's certificate")
    .option("--server-key <file>", "its key")
    .option("--client-cert <file>", "what the client's certificate is checked with")
    .option("--certificates-service <name>", "make the certificates that this Service names, and write those files")
    .action(async (flags: OperatorFlags) => {
      const logger = loggerFor(flags);
      done(await runUntilSignal((signal) => runOperator(flags, logger, signal), { logger }));
    });
}

/** A flag alone is on, as in Go's programs; written out it may be off too. */
function isOn(value: string): boolean {
  return !["false", "f", "0"].includes(value.toLowerCase());
}

async function runOperator(flags: OperatorFlags, logger: ReturnType<typeof loggerFor>, signal: AbortSignal) {
  const sidecarImage = process.env["SIDECAR_IMAGE"] ?? "";
  if (sidecarImage === "") throw new Error("SIDECAR_IMAGE is not set: name the image of the sidecar in it");
  const { compileListen } = await import("../plugin/barman-cloud/listen-flags.ts");
  const { runHooks } = await import("../plugin/barman-cloud/run-hooks.ts");
  const { createFiles } = await import("../process/files.ts");
  const listen = compileListen(flags);
  const { api, requests, namespace } = await connect(flags.kubeconfig);
  try {
    const healthAddress = parseAddress(flags.healthProbeBindAddress);
    const metricsAddress = parseAddress(flags.metricsBindAddress);
    const metrics = metricsAddress && { address: metricsAddress, secure: flags.metricsSecure, requests };
    const { leaderElect, certificatesService } = flags;
    const ports = { api, clock: systemClock, random: systemRandom, logger, files: createFiles() };
    const settings = { listen, sidecarImage, namespace, leaderElect, certificatesService, healthAddress, metrics };
    await runHooks({ ...ports, ...settings }, signal);
  } finally {
    await api.close();
  }
}

function addSidecar(program: Command, mode: "instance" | "restore", done: (code: number) => void): void {
  addCommonFlags(program.command(mode).description(`serve on the socket of ${mode === "instance" ? "a pod" : "a job"}`))
    .option("--metrics-bind-address <address>", "address of this process's /metrics; 0 for none", ":8080")
    .option("--pprof-server [address]", "serve profiles of this process; on port 6061 of localhost unless told", false)
    .action(async (flags: SidecarFlags) => {
      const logger = loggerFor(flags, process.env["POD_NAME"]);
      if (mode === "restore") collectAtOnce();
      const run = (signal: AbortSignal) =>
        profiled(profilerOf(flags, logger), () => runSidecar(mode, flags, logger, signal));
      done(await runUntilSignal(run, { logger }));
    });
}

/** What the flag asks for; `undefined` when it is off. */
function profilerOf({ pprofServer }: SidecarFlags, logger: ReturnType<typeof loggerFor>): ProfilerOptions | undefined {
  const isAddress = typeof pprofServer === "string" && pprofServer.includes(":");
  if (!pprofServer || (typeof pprofServer === "string" && !isAddress && !isOn(pprofServer))) return undefined;
  const port = Number(process.env["CNPG_TS_PPROF_PORT"] || ports.sidecarPprof);
  const address = isAddress ? (parseAddress(pprofServer) ?? {}) : { host: "127.0.0.1" };
  return { host: "0.0.0.0", port, ...address, clock: systemClock, logger };
}

async function runSidecar(
  mode: "instance" | "restore",
  flags: SidecarFlags,
  logger: ReturnType<typeof loggerFor>,
  signal: AbortSignal,
) {
  const sidecar = await import("../plugin/barman-cloud/run-sidecar.ts");
  const { createFiles } = await import("../process/files.ts");
  const address = parseAddress(flags.metricsBindAddress);
  const { api, requests } = await connect(flags.kubeconfig);
  const socketFolder = process.env["PLUGIN_SOCKET_DIR"];
  try {
    await sidecar.runSidecar(
      {
        mode,
        api,
        clock: systemClock,
        random: systemRandom,
        logger,
        files: createFiles(),
        env: process.env,
        metrics: address && { address, requests },
        ...(socketFolder ? { socketFolder } : {}),
      },
      signal,
    );
  } finally {
    await api.close();
  }
}

function addHealthcheck(program: Command, done: (code: number) => void): void {
  addCommonFlags(
    program.command("healthcheck [words...]").description("ask whether the plugin of this pod serves"),
  ).action(async (words: string[]) => {
    const { runHealthcheck } = await import("../plugin/barman-cloud/healthcheck.ts");
    const { code, message } = await runHealthcheck(words, process.env["PLUGIN_SOCKET_DIR"] || undefined);
    if (message) process.stderr.write(`${message}\n`);
    done(code);
  });
}

function parseAddress(text: string): { host?: string; port: number } | undefined {
  if (text === "" || text === "0") return undefined;
  const colon = text.lastIndexOf(":");
  const host = text.slice(0, Math.max(colon, 0)).replace(/^\[|\]$/g, "");
  const port = Number(text.slice(colon + 1));
  if (!Number.isInteger(port)) throw new Error(`"${text}" is no address: use [host]:port`);
  return host ? { host, port } : { port };
}

async function main(): Promise<number> {
  let code = 0;
  const done = (result: number) => {
    code = result;
  };
  const program = new Command("manager").exitOverride().showHelpAfterError(false);
  addOperator(program, done);
  addSidecar(program, "instance", done);
  addSidecar(program, "restore", done);
  addHealthcheck(program, done);
  for (const command of program.commands) command.exitOverride();
  try {
    await program.parseAsync(process.argv);
    return code;
  } catch (error) {
    // Commander has printed its own message already.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 1;
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  }
}

main().then(
  (code) => process.exit(code),
  () => process.exit(1),
);
