import { roles } from "../../api/constants.ts";
import type { SqlSession } from "../../ports/sql-session.ts";
import { type Lsn, parseLsn } from "../../postgres/lsn.ts";
import { parseTimelineHistory, switchPointOf, type TimelineSwitch } from "../../postgres/timeline-history.ts";
import type { InstanceContext } from "../instance-context.ts";

/** What a server tells about itself over a replication connection. */
export interface ServerIdentity {
  systemId: string;
  timeline: number;
  position: Lsn | undefined;
}

interface SourceOptions {
  host: string;
  port: number;
  signal?: AbortSignal;
}

async function connect(context: InstanceContext, options: SourceOptions, replication: boolean) {
  const { files, paths, sql, settings } = context;
  const [ca, cert, key] = await Promise.all([
    files.read(`${paths.certificates}/server-ca.crt`),
    files.read(`${paths.certificates}/streaming_replica.crt`),
    files.read(`${paths.certificates}/streaming_replica.key`),
  ]);
  if (!ca || !cert || !key) {
    throw new Error(`the replication certificate is not in ${paths.certificates} yet; check the cluster's Secrets`);
  }
  return sql.connect(
    {
      host: options.host,
      port: options.port,
      user: roles.replication,
      database: "postgres",
      applicationName: settings.podName,
      connectTimeoutMs: 5_000,
      queryTimeoutMs: 10_000,
      replication,
      tls: { ca, cert, key },
    },
    options.signal,
  );
}

/** Asks a server who it is, how it came to its timeline, and where its history left the given one. */
export async function identifyServer(
  context: InstanceContext,
  options: SourceOptions & { timeline?: number },
): Promise<ServerIdentity & { switchPoint: Lsn | undefined; history: TimelineSwitch[] | undefined }> {
  const session = await connect(context, options, true);
  try {
    const [row] = await session.query("IDENTIFY_SYSTEM");
    const identity: ServerIdentity = {
      systemId: String(row?.["systemid"] ?? ""),
      timeline: Number(row?.["timeline"] ?? 0),
      position: parseLsn(String(row?.["xlogpos"] ?? "")),
    };
    let switchPoint: Lsn | undefined;
    let history: TimelineSwitch[] | undefined;
    if (options.timeline !== undefined && identity.timeline > 1) {
      const [row] = await session.query(`TIMELINE_HISTORY ${identity.timeline}`);
      const content = row?.["content"];
      const text = Buffer.isBuffer(content) ? content.toString("utf8") : String(content ?? "");
      history = parseTimelineHistory(text);
      switchPoint = switchPointOf(history ?? [], options.timeline);
    }
    return { ...identity, switchPoint, history };
  } finally {
    await session.close();
  }
}

/**
 * Whether the server is out of recovery and its control file shows the timeline it writes. Before its first checkpoint after a
 * promotion it does not, and pg_rewind would take the old timeline for the current one.
 */
export async function isSettledPrimary(
  context: InstanceContext,
  /** `follows`: it is the designated primary of a replica cluster, which stays in recovery. */
  options: SourceOptions & { follows?: boolean },
): Promise<boolean> {
  const session = await connect(context, options, false);
  try {
    const [row] = await session.query(
      `SELECT pg_is_in_recovery() AS recovering,
              CASE WHEN pg_is_in_recovery() THEN NULL
                   ELSE ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int END AS writing,
              (SELECT timeline_id FROM pg_control_checkpoint()) AS recorded`,
    );
    if (row?.["recovering"] === true) return options.follows ?? false;
    return row?.["recovering"] === false && row["writing"] === row["recorded"];
  } finally {
    await session.close();
  }
}

/** Works in one session on the primary as the replication user. */
export async function withSource<T>(
  context: InstanceContext,
  options: SourceOptions,
  work: (session: SqlSession) => Promise<T>,
): Promise<T> {
  const session = await connect(context, options, false);
  try {
    return await work(session);
  } finally {
    await session.close();
  }
}

/** Runs one query on the primary as the replication user. */
export function querySource(
  context: InstanceContext,
  options: SourceOptions,
  text: string,
): Promise<Record<string, unknown>[]> {
  return withSource(context, options, (session) => session.query(text));
}
