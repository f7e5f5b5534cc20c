import type { ControlData } from "../../postgres/control-data.ts";
import { parseLsn } from "../../postgres/lsn.ts";
import { checkPromotionToken, parsePromotionToken, type TokenCheck } from "../../postgres/promotion-token.ts";

/** What a designated primary tells the Cluster (reference: instance manager §4.3). */
export function planDesignation(view: {
  me: string;
  /** `status.currentPrimary`. */
  current: string;
  /** How far the change from a primary cluster is. */
  transition: "none" | "asked" | "completed";
  /** PostgreSQL is kept down, so that its files may be changed. */
  unavailable: boolean;
}): { claimCurrent: boolean; completeTransition: boolean } {
  const isCurrent = view.current === view.me;
  return {
    claimCurrent: !isCurrent,
    completeTransition: isCurrent && view.transition === "asked" && view.unavailable,
  };
}

/**
 * What is known of a token before the server is asked for a checkpoint: a point that was not replayed yet needs none. `undefined`:
 * the control file decides, once a checkpoint has brought it up to date.
 */
export function checkReplayedPoint(text: string, replayedLsn: string | undefined): TokenCheck | undefined {
  const token = parsePromotionToken(text);
  if ("error" in token) return { kind: "fatal", reason: `the promotion token can't be read: ${token.error}` };
  const wanted = parseLsn(token.latestCheckpointREDOLocation);
  const replayed = parseLsn(replayedLsn ?? "");
  if (wanted === undefined || replayed === undefined || replayed >= wanted) return undefined;
  return { kind: "retry", reason: `waiting for ${token.latestCheckpointREDOLocation}, now at ${replayedLsn}` };
}

/** Whether the control file, right after a checkpoint, is at the very point that a token names. */
export function checkTokenAgainst(text: string, control: ControlData): TokenCheck {
  const token = parsePromotionToken(text);
  if ("error" in token) return { kind: "fatal", reason: `the promotion token can't be read: ${token.error}` };
  const { systemId, timeline, redoLsn } = control;
  if (!systemId || timeline === undefined || !redoLsn) {
    return { kind: "retry", reason: "the control file could not be read" };
  }
  return checkPromotionToken(token, { systemId, timeline, replayedLsn: redoLsn });
}
