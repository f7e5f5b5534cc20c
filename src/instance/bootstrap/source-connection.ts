// The server of elsewhere that a bootstrap copies or imports from, by its own tools and their connection library.
import type { Cluster } from "../../api/generated/cluster.ts";
import { buildExternalConninfo, findExternalCluster, redactConninfo } from "../../postgres/conninfo.ts";
import { type ExternalServer, writeExternalFiles } from "../external-servers.ts";
import type { InstanceContext } from "../instance-context.ts";
import { relocate } from "../instance-paths.ts";
import { SecretReader } from "../secret-reader.ts";

/** A way to connect: the text for command lines, and the environment that holds what must not be seen there. */
export interface SourceConnection {
  name: string;
  conninfo(overrides?: Readonly<Record<string, string>>): string;
  environment: Record<string, string>;
}

/** Longest wait for credentials that the operator has not granted yet. */
const credentialsLimitMs = 60_000;
const firstPauseMs = 250;
const longestPauseMs = 5_000;

/** The external cluster of that name, its credentials written to files. */
export async function openSource(
  context: InstanceContext,
  cluster: Cluster,
  name: string,
  field: string,
): Promise<SourceConnection> {
  const server = findExternalCluster(cluster, name);
  if (!server) throw new Error(`${field} "${name}" is not among spec.externalClusters; add it there`);
  if (Object.keys(server.connectionParameters ?? {}).length === 0) {
    throw new Error(`external cluster ${name} has no connectionParameters, which ${field} needs`);
  }
  await writeCredentials(context, server);
  const { password, ...connectionParameters } = server.connectionParameters ?? {};
  const visible = { ...server, connectionParameters };
  return {
    name,
    conninfo: (overrides = {}) => relocate(context.settings, buildExternalConninfo(visible, overrides)),
    environment: { ...context.settings.environment, ...(password ? { PGPASSWORD: password } : {}) },
  };
}

async function writeCredentials(context: InstanceContext, server: ExternalServer): Promise<void> {
  const { clock, logger, kube, settings } = context;
  const endMs = clock.monotonicMs() + credentialsLimitMs;
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(longestPauseMs, pauseMs * 2)) {
    try {
      await writeExternalFiles(context, server, new SecretReader(kube, clock, settings.namespace));
      return;
    } catch (error) {
      if (clock.monotonicMs() > endMs) throw error;
      logger.info("The credentials of the external cluster are not there yet", { externalCluster: server.name, error });
      await clock.sleep(pauseMs);
    }
  }
}

/** How long a source may refuse us before that counts: what it lacks may be made just now. */
const refusalLimitMs = 15_000;

const passingRefusals = [
  /starting up/,
  /shutting down/,
  /recovery mode/,
  /accepting connections/,
  /too many/,
  /slots are reserved/,
  /administrator command/,
];

/** Whether a server answered what waiting does not change: it lacks the database or the role, or does not let that in. */
export function isRefusal(message: string): boolean {
  return message.includes("FATAL:") && !passingRefusals.some((it) => it.test(message));
}

/**
 * Waits until the source lets us in; without a limit for one that does not answer, as it may be on its way. `mayRefuse`: one that
 * answers and keeps us out ends the wait with what it said. @default mayRefuse false
 */
export async function waitForSource(
  context: InstanceContext,
  source: SourceConnection,
  options: { replication: boolean; mayRefuse?: boolean },
): Promise<void> {
  const { clock, logger } = context;
  let refusedSinceMs: number | undefined;
  const overrides = { connect_timeout: "5", ...(options.replication ? { replication: "1" } : {}) };
  const query = options.replication ? "IDENTIFY_SYSTEM" : "SELECT 1";
  logger.info("Waiting for server to be available", { connectionString: redactConninfo(source.conninfo()) });
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(longestPauseMs, pauseMs * 2)) {
    try {
      await runQuery(context, source, query, overrides);
      return;
    } catch (error) {
      const refused = options.mayRefuse === true && isRefusal(String(error));
      refusedSinceMs = refused ? (refusedSinceMs ?? clock.monotonicMs()) : undefined;
      if (refusedSinceMs !== undefined && clock.monotonicMs() - refusedSinceMs >= refusalLimitMs) throw error;
      logger.info("The server does not answer yet", { externalCluster: source.name, error });
    }
    await clock.sleep(pauseMs);
  }
}

/** Output of one query on the source, unaligned and without headings. */
export async function runQuery(
  context: InstanceContext,
  source: SourceConnection,
  query: string,
  overrides: Readonly<Record<string, string>> = {},
): Promise<string> {
  const args = ["-XAtqw", "-v", "ON_ERROR_STOP=1", "-d", source.conninfo(overrides), "-c", query];
  const { code, signal, stdout, stderr } = await context.processes.run("psql", args, { env: source.environment });
  if (code === 0) return stdout;
  throw new Error(stderr.trim() || `psql ended with ${code ?? signal}`);
}
