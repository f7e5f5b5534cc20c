import { desiredDisruptionBudgets } from "../../build/disruption-budgets.ts";
import { ownsObject } from "../../build/metadata.ts";
import { mergeMetadata } from "../../build/metadata-repair.ts";
import { sameJson } from "../../build/same-json.ts";
import { refTo } from "./actions.ts";
import { draftCluster, type Pass, recordEvent } from "./pass.ts";

/** The disruption budgets; one of that name that belongs to somebody else is left alone. */
export function planBudgets(pass: Pass): void {
  for (const { name, budget } of desiredDisruptionBudgets(draftCluster(pass), pass.observed.operator.context)) {
    const live = pass.observed.budgets.get(name);
    if (live && (live.metadata.deletionTimestamp || !ownsObject(pass.cluster, live))) continue;
    if (!live && budget) {
      const reason = `Creating PodDisruptionBudget ${name}`;
      recordEvent(pass, "Normal", "CreatingPodDisruptionBudget", reason);
      pass.actions.push({ kind: "create", object: { ...budget }, mustOwn: true, reason });
    } else if (live && !budget) {
      const reason = `Deleting Pod Disruption Budget ${name}`;
      recordEvent(pass, "Normal", "DeletingPodDisruptionBudget", reason);
      pass.actions.push({ kind: "delete", target: refTo(live), propagation: "Background", bestEffort: false, reason });
    } else if (live && budget) {
      const metadata = mergeMetadata(live.metadata, budget.metadata);
      if (!metadata && sameJson(live.spec, budget.spec)) continue;
      const reason = `Updating PodDisruptionBudget ${name}`;
      recordEvent(pass, "Normal", "UpdatingPodDisruptionBudget", reason);
      const object = { ...live, metadata: metadata ?? live.metadata, spec: budget.spec };
      pass.actions.push({ kind: "update", object, reason });
    }
  }
}
