import type { Cluster } from "../../api/generated/cluster.ts";
import type { PersistentVolumeClaim } from "../../api/generated/kubernetes.ts";
import { annotations, labels } from "../../api/labels.ts";
import { phases } from "../../api/phases.ts";
import { type Pass, recordEvent, setPhase } from "./pass.ts";
import { isTerminating } from "./volumes.ts";

/**
 * The Cluster as its volumes show that it must be: instances whose WAL lies on a volume of its own cannot start without it.
 * The webhook refuses a spec that drops the section, and where there is none the section is taken to be there still.
 */
export function keepWalStorage(cluster: Cluster, volumes: readonly PersistentVolumeClaim[]): Cluster {
  if (cluster.spec.walStorage || cluster.metadata.annotations?.[annotations.validation] === "disabled") return cluster;
  const volume = volumes.find((it) => it.metadata.labels?.[labels.pvcRole] === "PG_WAL" && !isTerminating(it));
  const size = volume?.spec?.resources?.requests?.["storage"];
  if (size === undefined) return cluster;
  const storageClass = volume?.spec?.storageClassName;
  const walStorage = { size: String(size), ...(storageClass === undefined ? {} : { storageClass }) };
  return { ...cluster, spec: { ...cluster.spec, walStorage } };
}

/** Tells that the cluster works by a section that its definition lacks. */
export function reportKeptWalStorage(pass: Pass): void {
  const reason =
    "spec.walStorage cannot be removed: the WAL of the instances is on volumes of its own, which stay in use. " +
    "Put the section back into the definition";
  if (pass.cluster.status?.phaseReason !== reason) recordEvent(pass, "Warning", "InvalidClusterDefinition", reason);
  setPhase(pass, phases.invalid, reason);
}
