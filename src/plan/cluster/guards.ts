import { phases } from "../../api/phases.ts";
import { isFirstBoot } from "./instance-jobs.ts";
import { isManagerReplaced } from "./manager-upgrade.ts";
import type { PolledInstance } from "./observed.ts";
import { type Pass, recordEvent, setPhase, type Wait } from "./pass.ts";
import { isStoppedByFullDisk } from "./pods.ts";
import { concludePrimaryLost } from "./silent-lease.ts";

const communicationReason =
  "Communication issue detected: The operator was unable to receive the status from all the ready instances. " +
  "This may be due to network restrictions such as NetworkPolicy and/or any other network plugin setting. " +
  "Please verify your network configuration.";

const diskReason =
  "Insufficient disk space detected in one or more pods is preventing PostgreSQL from running." +
  "Please verify your storage settings. Further information inside .status.instancesReportedState";

/** More than one instance says it is primary: the stale one has to step down by itself, so nothing is touched. */
export function waitForSinglePrimary(sorted: readonly PolledInstance[]): Wait | null {
  const primaries = sorted.filter((it) => it.kind === "answered" && it.status.isPrimary).map((it) => it.name);
  if (primaries.length < 2) return null;
  return { requeueAfterMs: 5_000, because: `${primaries.join(" and ")} both report being primary` };
}

/** None of the ready pods answers: the fault is between the operator and the pods, so nothing is concluded. */
export function waitForCommunication(pass: Pass, sorted: readonly PolledInstance[]): Wait | null {
  const ready = sorted.filter((it) => it.ready);
  if (ready.length === 0 || ready.some((it) => it.kind === "answered")) return null;
  const replaced = ready.find((it) => isManagerReplaced(pass, it));
  if (replaced) return { requeueAfterMs: 500, because: `${replaced.name} replaces its instance manager` };
  setPhase(pass, phases.statusExtractionError, communicationReason);
  return { requeueAfterMs: 10_000, because: "no ready instance answers the status call" };
}

/** A full WAL volume stopped PostgreSQL: a failover would meet the same full disk. */
export function waitForDiskSpace(pass: Pass, sorted: readonly PolledInstance[]): Wait | null {
  const full = sorted.filter((it) => isStoppedByFullDisk(it.pod)).map((it) => it.name);
  if (full.length === 0) return null;
  setPhase(pass, phases.notEnoughDisk, diskReason);
  return { requeueAfterMs: 10_000, because: `PostgreSQL stopped on a full volume in ${full.join(", ")}` };
}

/** The best instance is not ready yet, or the primary is Ready and silent: readiness decides, not one failed call. */
export function waitForReadiness(pass: Pass, sorted: readonly PolledInstance[]): Wait | null {
  const { currentPrimary, targetPrimary } = pass.status;
  const [first] = sorted;
  // An instance that is kept from being ready on purpose is nothing to wait for.
  if (first?.kind === "answered" && !first.ready && !first.status.mightBeUnavailable && !isFirstBoot(pass)) {
    const isStable = currentPrimary === targetPrimary;
    return { requeueAfterMs: isStable ? 10_000 : 1_000, because: `instance ${first.name} answers but is not ready` };
  }
  if (!currentPrimary || currentPrimary !== targetPrimary) return null;
  const primary = sorted.find((it) => it.name === currentPrimary);
  if (primary?.kind !== "silent" || !primary.ready) return null;
  if (concludePrimaryLost(pass, sorted) !== null) return null;
  if (isManagerReplaced(pass, primary)) {
    return { requeueAfterMs: 500, because: `primary ${primary.name} replaces its instance manager` };
  }
  recordEvent(
    pass,
    "Warning",
    "PrimaryStatusCheckFailed",
    `Primary pod ${primary.name} is Ready but the operator's /pg/status check failed; failover deferred until ` +
      "Kubernetes marks the primary as not Ready. See operator logs for the underlying error.",
  );
  return { requeueAfterMs: 2_000, because: `primary ${primary.name} is Ready but silent: ${primary.reason}` };
}
