import { clusterName } from "../../api/cluster-facts.ts";
import { parseNodeSerial } from "../../api/markers.ts";
import { instanceName } from "../../api/names.ts";
import { phases } from "../../api/phases.ts";
import { buildPvcs, expectedPvcs } from "../../build/pvcs.ts";
import { canClone, isFirstBoot, planInstanceJob } from "./instance-jobs.ts";
import { instanceOfJob, isJobComplete } from "./jobs.ts";
import type { PolledInstance } from "./observed.ts";
import { draftCluster, flushStatus, type Pass, recordEvent, setPhase, type Wait } from "./pass.ts";
import { freeSerials } from "./serials.ts";

/** Instances that are there for the operator to count on: ready, or kept from being so on purpose. */
export function reportingInstances(instances: readonly PolledInstance[]): PolledInstance[] {
  return instances.filter((it) => it.ready || (it.kind === "answered" && it.status.mightBeUnavailable));
}

/** Instances that a Job is still preparing. */
export function instancesInPreparation(pass: Pass): Set<string> {
  const running = pass.observed.jobs.filter((it) => !isJobComplete(it));
  return new Set(running.map(instanceOfJob).filter((it) => it !== undefined));
}

/**
 * Adds the replicas that are missing, all at once: they clone side by side (reference: cluster controller §5.4). It waits
 * until every instance that is not itself being cloned reports.
 */
export function planNewReplicas(pass: Pass): Wait | null {
  const wanted = pass.cluster.spec.instances;
  const present = pass.status.instanceNames ?? [];
  if (present.length >= wanted || !canClone(pass)) return null;
  const preparing = instancesInPreparation(pass);
  const reporting = new Set(reportingInstances(pass.observed.instances).map((it) => it.name));
  const isExcused = (instance: string) => instance === pass.status.currentPrimary && isFirstBoot(pass);
  if (present.some((it) => !preparing.has(it) && !reporting.has(it) && !isExcused(it))) return null;
  const name = clusterName(pass.cluster);
  const serials = freeSerials(name, [...present, ...keptInstances(pass)], wanted - present.length);
  const blocked = serials
    .map((serial) => removalInTheWay(pass, instanceName(name, serial)))
    .find((it) => it !== undefined);
  if (blocked) {
    setPhase(pass, phases.creatingReplica, blocked);
    return { requeueAfterMs: 1_000, because: blocked };
  }
  const instances = serials.map((serial) => ({ serial, instance: instanceName(name, serial) }));
  for (const { instance } of instances)
    recordEvent(pass, "Normal", "CreatingInstance", `Creating instance ${instance}`);
  const because = `Creating replica ${instances.map((it) => `${it.instance}-join`).join(", ")}`;
  setPhase(pass, phases.creatingReplica, because);
  flushStatus(pass, because);
  let wait: Wait | null = null;
  for (const { serial, instance } of instances) {
    for (const volume of buildPvcs(draftCluster(pass), serial, pass.observed.operator.context)) {
      pass.actions.push({
        kind: "create",
        object: { ...volume },
        mustOwn: true,
        reason: `${instance} is to be cloned`,
      });
    }
    wait = planInstanceJob(pass, { instance, serial }) ?? wait;
  }
  return wait ?? { requeueAfterMs: 5_000, because };
}

/** Instances whose volumes were taken out of the cluster to be kept, as `kubectl cnpg destroy --keep-pvc` does: no new one may use them. */
function keptInstances(pass: Pass): string[] {
  const serials = pass.observed.orphanVolumes.map(parseNodeSerial).filter((it) => it !== undefined);
  return serials.map((serial) => instanceName(clusterName(pass.cluster), serial));
}

function removalInTheWay(pass: Pass, instance: string): string | undefined {
  const names = new Set(expectedPvcs(pass.cluster, instance).map((it) => it.name));
  const terminating = pass.observed.volumes.find(
    (it) => it.metadata.deletionTimestamp && names.has(it.metadata.name ?? ""),
  );
  if (!terminating) return undefined;
  return `Waiting for PVC "${terminating.metadata.name}" to be removed before recreating instance "${instance}"`;
}
