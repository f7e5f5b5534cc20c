import type { PostmasterCommand, PostmasterHost } from "../../ports/postmaster-host.ts";
import { DirectHost } from "../../process/direct-host.ts";
import type { InstanceContext } from "../instance-context.ts";
import { findProgram, Postmaster } from "../postmaster.ts";

/** The server ended by itself, or never took connections. */
export class TemporaryServerError extends Error {
  override readonly name = "TemporaryServerError";
}

/** Longest wait for a temporary server to start or stop. */
const limitMs = 10 * 60_000;

/**
 * A server that only a bootstrap job talks to: it listens on the socket and on the loopback address. `startLimitMs` is the
 * longest wait for it to take connections. @default 10 minutes
 */
export async function withTemporaryServer<T>(
  context: InstanceContext,
  work: (server: Pick<Postmaster, "pid">) => Promise<T>,
  options: { startLimitMs?: number } = {},
): Promise<T> {
  const { logger, paths, settings } = context;
  const output = logger.child({ logger: "postgres" });
  const direct = new DirectHost(
    (pipe, line) => output.info(line, { pipe }),
    () => undefined,
  );
  const extra = [
    `port=${settings.postgresPort}`,
    `unix_socket_directories=${paths.socketDir}`,
    "listen_addresses=127.0.0.1",
  ].flatMap((setting) => ["-c", setting]);
  const host: PostmasterHost = withArguments(direct, extra);
  const postmaster = new Postmaster(context, host);
  logger.info("Starting up instance", {
    pgdata: paths.pgData,
    program: findProgram(settings.postgresName, settings.environment["PATH"] ?? ""),
    options: extra,
  });
  await postmaster.start();
  try {
    const { startLimitMs = limitMs } = options;
    const signal = startLimitMs === Number.POSITIVE_INFINITY ? undefined : AbortSignal.timeout(startLimitMs);
    if (!(await postmaster.waitUntilAccepting(signal))) {
      throw new TemporaryServerError("the temporary PostgreSQL server did not start; its own messages are above");
    }
    return await work(postmaster);
  } finally {
    logger.info("Shutting down instance", { pgdata: paths.pgData, mode: "fast" });
    const exited = postmaster.exited();
    postmaster.stop("fast");
    const timer = setTimeout(() => postmaster.stop("immediate"), limitMs);
    await exited;
    clearTimeout(timer);
  }
}

/** The same host, with more arguments for the postmaster. */
function withArguments(host: DirectHost, extra: readonly string[]): PostmasterHost {
  return {
    hello: () => host.hello(),
    takeLogs: () => host.takeLogs(),
    spawn: (command: PostmasterCommand) => host.spawn({ ...command, argv: [...command.argv, ...extra] }),
    onPostmasterExit: (handler) => host.onPostmasterExit(handler),
    setDeadline: (ms) => host.setDeadline(ms),
    probeVolumes: () => host.probeVolumes(),
    keep: () => host.keep(),
    upgrade: () => host.upgrade(),
    exit: (code) => host.exit(code),
    lost: host.lost,
  };
}
