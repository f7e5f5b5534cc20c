import { parseNodeSerial } from "../../api/markers.ts";
import { parseQuantity } from "../../api/quantity.ts";
import { buildPvc, expectedPvcs, requestedSize } from "../../build/pvcs.ts";
import { refTo } from "./actions.ts";
import { draftCluster, type Pass, type Wait } from "./pass.ts";

/** Creates volumes that existing pods are to get, and lets volumes grow to the size the spec asks for. */
export function planVolumeChanges(pass: Pass): Wait | null {
  const created = planNewVolumes(pass);
  planGrowth(pass);
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

function planGrowth(pass: Pass): void {
  for (const volume of pass.observed.volumes) {
    const serial = parseNodeSerial(volume);
    if (serial === undefined || volume.metadata.deletionTimestamp) continue;
    const instance = `${pass.cluster.metadata.name}-${serial}`;
    const expected = expectedPvcs(pass.cluster, instance).find((it) => it.name === volume.metadata.name);
    if (!expected || expected.storage.resizeInUseVolumes === false) continue;
    const wanted = requestedSize(expected.storage);
    const present = volume.spec?.resources?.requests?.["storage"];
    if (wanted === undefined || present === undefined || !isLarger(wanted, present)) continue;
    const reason = `volume ${expected.name} is to grow from ${present} to ${wanted}`;
    const patch = { spec: { resources: { requests: { storage: wanted } } } };
    // A storage class that cannot grow volumes refuses this for ever; everything else has to go on.
    const failureEvent = "VolumeCannotGrow";
    pass.actions.push({ kind: "patch", target: refTo(volume), patch, bestEffort: true, failureEvent, reason });
  }
}

function isLarger(wanted: string | number, present: string | number): boolean {
  const a = parseQuantity(wanted);
  const b = parseQuantity(present);
  return a !== undefined && b !== undefined && a > b;
}
