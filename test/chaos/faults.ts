import { clockFaults } from "./clock-faults.ts";
import { controlPlaneFaults } from "./control-plane-faults.ts";
import { diskFaults } from "./disk-faults.ts";
import type { Fault } from "./fault.ts";
import { networkFaults } from "./network-faults.ts";
import { nodeFaults } from "./node-faults.ts";
import { planned } from "./planned.ts";
import { podFaults } from "./pod-faults.ts";
import { standbyFaults } from "./standby-faults.ts";

/** Every fault by its name, under the headings of the report. */
export const faultsByKind: Readonly<Record<string, Readonly<Record<string, Fault>>>> = {
  "The primary's pod and processes": podFaults,
  "The primary's node": nodeFaults,
  Network: networkFaults,
  Disks: diskFaults,
  Clock: clockFaults,
  Standbys: standbyFaults,
  "Control plane": controlPlaneFaults,
  Planned: planned,
};

/** Every fault by its name. */
export const faults: Readonly<Record<string, Fault>> = Object.assign({}, ...Object.values(faultsByKind));
