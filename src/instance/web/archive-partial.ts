import { link, rm } from "node:fs/promises";
import { parseTargetPrimary } from "../../api/pg-status.ts";
import type { InstanceContext } from "../instance-context.ts";
import { type HttpAnswer, jsonAnswer } from "./http-answer.ts";

function refusal(code: string, message: string): HttpAnswer {
  return jsonAnswer(400, { error: { code, message } });
}

/** `/pg/archive/partial`: archives the unfinished segment of a fenced primary (reference: instance manager §6.5). */
export async function archivePartial(context: InstanceContext): Promise<HttpAnswer> {
  const { state, settings, data, paths, archiveWal } = context;
  const { cluster } = state;
  if (!state.fenced) return refusal("NOT_FENCED", "this instance is not fenced, its segment may still change");
  if (!cluster) return refusal("NO_CLUSTER_FOUND", "the Cluster has not been read yet");
  const target = parseTargetPrimary(cluster.status?.targetPrimary);
  const isTarget = target.kind === "instance" && target.name === settings.podName;
  if (!isTarget || cluster.status?.currentPrimary !== settings.podName) {
    return refusal("NOT_EXPECTED_PRIMARY", `${settings.podName} is not both the current and the target primary`);
  }
  const wal = (await data.control()).redoWalFile;
  if (!wal) return refusal("COULD_NOT_PARSE_REDOWAL_FILE", "pg_controldata names no REDO WAL file");
  const partial = `${paths.pgWal}/${wal}.partial`;
  try {
    // Left by an attempt that was cut off.
    await rm(partial, { force: true });
    await link(`${paths.pgWal}/${wal}`, partial);
  } catch (error) {
    return refusal("ERROR_WHILE_CREATING_SYMLINK", textOf(error));
  }
  try {
    await archiveWal?.(partial);
    return jsonAnswer(200, { data: wal });
  } catch (error) {
    return refusal("ERROR_WHILE_EXECUTING_WAL_ARCHIVE", textOf(error));
  } finally {
    await rm(partial, { force: true });
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
