import { clusterName } from "../../api/cluster-facts.ts";
import { instanceName } from "../../api/names.ts";
import { phases } from "../../api/phases.ts";
import { buildPvcs } from "../../build/pvcs.ts";
import { type BootstrapSource, chooseBootstrapSource } from "./bootstrap-source.ts";
import { isInitialized } from "./conditions.ts";
import { planInstanceJob } from "./instance-jobs.ts";
import { draftCluster, flushStatus, type Pass, recordEvent, setPhase, setTargetPrimary, type Wait } from "./pass.ts";
import { freeSerials } from "./serials.ts";

const lostReason =
  "One or more instances were previously created, but no PersistentVolumeClaims (PVCs) exist. " +
  "The cluster is in an unrecoverable state. To resolve this, restore the cluster from a recent backup.";

/** What the event says of where the data comes from. */
const origins = {
  initdb: "initdb",
  archive: "from backup",
  snapshots: "from volumeSnapshots",
  baseBackup: "from physical backup",
} as const;

/**
 * Makes the first primary: its name is written as the target before anything exists, then its volumes, then the Job that
 * fills them (reference: cluster controller §5.3). Each step can be the last one before the operator ends.
 */
export function planFirstPrimary(pass: Pass): Wait | null {
  if ((pass.status.instances ?? 0) > 0) return null;
  if (isInitialized(pass.status)) {
    setPhase(pass, phases.unrecoverable, lostReason);
    return { because: lostReason };
  }
  const source = chooseBootstrapSource(pass.cluster, pass.observed);
  if (source.kind === "blocked") return waitForSource(pass, source);
  const [serial = 1] = freeSerials(clusterName(pass.cluster), [], 1);
  const instance = instanceName(clusterName(pass.cluster), serial);
  const because = `Creating primary instance ${instance}`;
  recordEvent(pass, "Normal", "CreatingInstance", `Primary instance (${origins[source.kind]})`);
  // Written anew in every pass, the time would keep an operator that dies after each write from ever getting to the volumes.
  if (pass.status.targetPrimary !== instance) setTargetPrimary(pass, instance);
  setPhase(pass, phases.settingUpPrimary, because);
  flushStatus(pass, because);
  const sources = source.kind === "snapshots" ? source.sources : undefined;
  for (const volume of buildPvcs(draftCluster(pass), serial, pass.observed.operator.context, sources)) {
    pass.actions.push({ kind: "create", object: { ...volume }, mustOwn: true, reason: because });
  }
  const wait = planInstanceJob(pass, { instance, serial });
  return wait ?? { requeueAfterMs: 5_000, because };
}

/** The phase tells what is missing; the event comes once for each thing. */
function waitForSource(pass: Pass, { because, requeueAfterMs, event }: BootstrapSource & { kind: "blocked" }): Wait {
  if (pass.status.phaseReason !== because) recordEvent(pass, "Warning", event, because);
  setPhase(pass, phases.settingUpPrimary, because);
  return { requeueAfterMs, because };
}
