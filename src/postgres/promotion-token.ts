import type { ControlData } from "./control-data.ts";
import { parseLsn } from "./lsn.ts";

/** Where a demoted primary cluster stopped, so that its successor starts at exactly that point. */
export interface PromotionToken {
  latestCheckpointTimelineID: string;
  redoWalFile: string;
  databaseSystemIdentifier: string;
  latestCheckpointREDOLocation: string;
  timeOfLatestCheckpoint: string;
  operatorVersion: string;
}

const fields = [
  "latestCheckpointTimelineID",
  "redoWalFile",
  "databaseSystemIdentifier",
  "latestCheckpointREDOLocation",
  "timeOfLatestCheckpoint",
  "operatorVersion",
] as const;

/** Reads a token; an unreadable one gives the reason. */
export function parsePromotionToken(text: string): PromotionToken | { error: string } {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text.trim())) return { error: "Base64 decoding failed" };
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(text.trim(), "base64").toString("utf8"));
  } catch {
    return { error: "JSON decoding failed" };
  }
  if (typeof value !== "object" || value === null) return { error: "JSON decoding failed" };
  const token = value as Record<string, unknown>;
  const missing = fields.find((field) => typeof token[field] !== "string" || token[field] === "");
  return missing ? { error: `${missing} is empty` } : (token as unknown as PromotionToken);
}

/** Makes the token of a cleanly stopped primary; `undefined` when the control data lack a value. */
export function buildPromotionToken(control: ControlData, operatorVersion: string): string | undefined {
  const { timeline, redoWalFile, systemId, redoLsn, checkpointTime } = control;
  if (timeline === undefined || !redoWalFile || !systemId || !redoLsn || !checkpointTime) return undefined;
  const token: PromotionToken = {
    latestCheckpointTimelineID: String(timeline),
    redoWalFile,
    databaseSystemIdentifier: systemId,
    latestCheckpointREDOLocation: redoLsn,
    timeOfLatestCheckpoint: checkpointTime,
    operatorVersion,
  };
  return Buffer.from(JSON.stringify(token), "utf8").toString("base64");
}

/** Whether an instance may be promoted with a token. */
export type TokenCheck = { kind: "promote" } | { kind: "retry"; reason: string } | { kind: "fatal"; reason: string };

/** Compares a token with what this instance has replayed. */
export function checkPromotionToken(
  token: PromotionToken,
  own: { systemId: string; timeline: number; replayedLsn: string },
): TokenCheck {
  if (token.databaseSystemIdentifier !== own.systemId) {
    return fatal(`the token is of system ${token.databaseSystemIdentifier}, this instance of ${own.systemId}`);
  }
  const timeline = Number(token.latestCheckpointTimelineID);
  if (timeline > own.timeline) return retry(`waiting for timeline ${timeline}, now on ${own.timeline}`);
  if (!(timeline >= own.timeline))
    return fatal(`the token is of timeline ${timeline}, this instance on ${own.timeline}`);
  const wanted = parseLsn(token.latestCheckpointREDOLocation);
  const replayed = parseLsn(own.replayedLsn);
  if (wanted === undefined) return fatal(`the token's position ${token.latestCheckpointREDOLocation} is not readable`);
  if (replayed === undefined) return retry("the replayed position of this instance is not known yet");
  if (wanted > replayed) return retry(`waiting for ${token.latestCheckpointREDOLocation}, now at ${own.replayedLsn}`);
  if (wanted < replayed)
    return fatal(`this instance is at ${own.replayedLsn}, past ${token.latestCheckpointREDOLocation}`);
  return { kind: "promote" };
}

function retry(reason: string): TokenCheck {
  return { kind: "retry", reason };
}

function fatal(reason: string): TokenCheck {
  return { kind: "fatal", reason };
}
