import type { PersistentVolumeClaim } from "../../api/generated/kubernetes.ts";
import { parseNodeSerial } from "../../api/markers.ts";
import { parseQuantity } from "../../api/quantity.ts";
import { buildPvc, type ExpectedPvc, expectedPvcs, requestedSize } from "../../build/pvcs.ts";
import { refTo } from "./actions.ts";
import { draftCluster, type Pass, type Wait } from "./pass.ts";

type Storage = ExpectedPvc["storage"];

/** Creates volumes that existing pods are to get, and lets volumes follow the size and the attributes class that the spec asks for. */
export function planVolumeChanges(pass: Pass): Wait | null {
  const created = planNewVolumes(pass);
  planEdits(pass);
  return created ? { requeueAfterMs: 1_000, because: "volumes are being added to existing instances" } : null;
}

function planNewVolumes(pass: Pass): boolean {
  const names = new Set(pass.observed.volumes.map((it) => it.metadata.name));
  let created = false;
  for (const pod of pass.observed.pods) {
    const serial = parseNodeSerial(pod);
    if (serial === undefined || pod.metadata.deletionTimestamp) continue;
    for (const expected of expectedPvcs(pass.cluster, pod.metadata.name ?? "")) {
      // A data volume that is gone is never replaced under a pod: the instance has to be made anew.
      if (names.has(expected.name) || expected.role === "PG_DATA") continue;
      const volume = buildPvc(draftCluster(pass), serial, expected, pass.observed.operator.context);
      const reason = `instance ${pod.metadata.name} lacks volume ${expected.name}`;
      pass.actions.push({ kind: "create", object: { ...volume }, mustOwn: true, reason });
      created = true;
    }
  }
  return created;
}

function planEdits(pass: Pass): void {
  for (const volume of pass.observed.volumes) {
    const serial = parseNodeSerial(volume);
    if (serial === undefined || volume.metadata.deletionTimestamp) continue;
    const instance = `${pass.cluster.metadata.name}-${serial}`;
    const expected = expectedPvcs(pass.cluster, instance).find((it) => it.name === volume.metadata.name);
    if (!expected) continue;
    planGrowth(pass, volume, expected.storage);
    planAttributes(pass, volume, expected.storage);
  }
}

function planGrowth(pass: Pass, volume: PersistentVolumeClaim, storage: Storage): void {
  if (storage.resizeInUseVolumes === false) return;
  const wanted = requestedSize(storage);
  const present = volume.spec?.resources?.requests?.["storage"];
  if (wanted === undefined || present === undefined || !isLarger(wanted, present)) return;
  const reason = `volume ${volume.metadata.name} is to grow from ${present} to ${wanted}`;
  const patch = { spec: { resources: { requests: { storage: wanted } } } };
  // A storage class that cannot grow volumes refuses this for ever; everything else has to go on.
  const failureEvent = "VolumeCannotGrow";
  pass.actions.push({ kind: "patch", target: refTo(volume), patch, bestEffort: true, failureEvent, reason });
}

/**
 * A template that names no class asks for nothing: there are no attributes that a volume could go back to. The server takes
 * a change of claims that are bound only; one that will be wakes the next pass.
 */
function planAttributes(pass: Pass, volume: PersistentVolumeClaim, storage: Storage): void {
  const wanted = storage.pvcTemplate?.volumeAttributesClassName;
  const present = volume.spec?.volumeAttributesClassName;
  if (!wanted || wanted === present || volume.status?.phase !== "Bound") return;
  const reason = `volume ${volume.metadata.name} is to have the attributes of ${wanted}${present ? ` instead of ${present}` : ""}`;
  const patch = { spec: { volumeAttributesClassName: wanted } };
  const failureEvent = "VolumeCannotBeModified";
  pass.actions.push({ kind: "patch", target: refTo(volume), patch, bestEffort: true, failureEvent, reason });
}

function isLarger(wanted: string | number, present: string | number): boolean {
  const a = parseQuantity(wanted);
  const b = parseQuantity(present);
  return a !== undefined && b !== undefined && a > b;
}
