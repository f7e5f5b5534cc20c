import type { IncomingMessage } from "node:http";
import type { BackupMode, BackupModeFailure, BackupModeOutcome } from "../backup/backup-mode.ts";
import { type HttpAnswer, jsonAnswer, readBody } from "./http-answer.ts";

const statuses: Readonly<Record<BackupModeFailure["code"], 400 | 422>> = {
  ANOTHER_REQUEST_IN_PROGRESS: 422,
  CANNOT_INITIALIZE_CONNECTION: 422,
  NO_ONGOING_BACKUP: 400,
  NOT_CURRENT_RUNNING_BACKUP: 422,
  BACKUP_FAILED: 422,
  CANNOT_CLOSE_NOT_STARTED: 422,
};

/** `/pg/mode/backup`: GET looks, POST starts, PUT ends (reference: instance manager §6.4). */
export async function answerBackupMode(mode: BackupMode, request: IncomingMessage): Promise<HttpAnswer> {
  switch (request.method) {
    case "GET":
      return look(mode);
    case "POST": {
      const body = parse(await readBody(request));
      if (typeof body === "string") return refuse(400, "FAILED_TO_PARSE_REQUEST", body);
      const { backupName, immediateCheckpoint = false, waitForArchive = false } = body;
      return describe(await mode.start({ backupName, immediateCheckpoint, waitForArchive }));
    }
    case "PUT": {
      const body = parse(await readBody(request));
      if (typeof body === "string") return refuse(400, "FAILED_TO_PARSE_REQUEST", body);
      return describe(await mode.stop(body.backupName));
    }
    default:
      return refuse(405, "METHOD_NOT_ALLOWED", "only GET, POST and PUT are answered here");
  }
}

async function look(mode: BackupMode): Promise<HttpAnswer> {
  const seen = await mode.look();
  if ("failure" in seen) return refuseFor(seen.failure);
  const { data = {}, error } = seen;
  if (error === undefined) return jsonAnswer(200, { data });
  return jsonAnswer(200, { data, error: { code: "BACKUP_STATUS_CONTAINS_ERROR", message: error } });
}

/** Nested twice, as clients of the original read it. */
function describe(outcome: BackupModeOutcome): HttpAnswer {
  if ("failure" in outcome) return refuseFor(outcome.failure);
  return jsonAnswer(200, { data: { data: outcome.data } });
}

function refuseFor({ code, message }: BackupModeFailure): HttpAnswer {
  return refuse(statuses[code], code, message);
}

function refuse(status: number, code: string, message: string): HttpAnswer {
  return jsonAnswer(status, { error: { code, message } });
}

interface Body {
  backupName: string;
  immediateCheckpoint?: boolean;
  waitForArchive?: boolean;
}

/** The body, or what is wrong with it. */
function parse(text: string): Body | string {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return "the body is not JSON";
  }
  if (typeof body !== "object" || body === null || Array.isArray(body)) return "the body is no JSON object";
  const fields = body as Record<string, unknown>;
  for (const field of ["immediateCheckpoint", "waitForArchive"]) {
    if (fields[field] !== undefined && typeof fields[field] !== "boolean") return `${field} is neither true nor false`;
  }
  const { backupName } = fields;
  if (typeof backupName !== "string" || backupName === "") return "backupName is empty: give the name of the Backup";
  return fields as unknown as Body;
}
