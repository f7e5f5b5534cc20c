import { clusterName } from "../../api/cluster-facts.ts";
import { instanceName } from "../../api/names.ts";
import { phases } from "../../api/phases.ts";
import { buildPvcs } from "../../build/pvcs.ts";
import { isInitialized } from "./conditions.ts";
import { planInstanceJob, unsupportedBootstrap } from "./instance-jobs.ts";
import { draftCluster, flushStatus, type Pass, recordEvent, setPhase, setTargetPrimary, type Wait } from "./pass.ts";
import { freeSerials } from "./serials.ts";

const lostReason =
  "One or more instances were previously created, but no PersistentVolumeClaims (PVCs) exist. " +
  "The cluster is in an unrecoverable state. To resolve this, restore the cluster from a recent backup.";

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
  const unsupported = unsupportedBootstrap(pass);
  if (unsupported) {
    if (pass.status.phaseReason !== unsupported) recordEvent(pass, "Warning", "UnsupportedBootstrap", unsupported);
    setPhase(pass, phases.cannotCreateObjects, unsupported);
    return { because: unsupported };
  }
  const [serial = 1] = freeSerials(clusterName(pass.cluster), [], 1);
  const instance = instanceName(clusterName(pass.cluster), serial);
  const because = `Creating primary instance ${instance}`;
  recordEvent(pass, "Normal", "CreatingInstance", "Primary instance (initdb)");
  setTargetPrimary(pass, instance);
  setPhase(pass, phases.settingUpPrimary, because);
  flushStatus(pass, because);
  for (const volume of buildPvcs(draftCluster(pass), serial, pass.observed.operator.context)) {
    pass.actions.push({ kind: "create", object: { ...volume }, mustOwn: true, reason: because });
  }
  const wait = planInstanceJob(pass, { instance, serial });
  return wait ?? { requeueAfterMs: 5_000, because };
}
