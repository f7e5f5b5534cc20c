import type { Service } from "../../api/generated/kubernetes.ts";
import { ownsObject } from "../../build/metadata.ts";
import { planServiceUpdate } from "../../build/service-update.ts";
import { desiredServices, obsoleteManagedServices } from "../../build/services.ts";
import { refTo } from "./actions.ts";
import type { Problem } from "./auxiliary.ts";
import { draftCluster, type Pass, type Wait } from "./pass.ts";

/** The Services of the cluster, default and managed (reference: cluster controller §2.6). */
export function planServices(pass: Pass): { problems: Problem[]; wait: Wait | null } {
  const problems: Problem[] = [];
  let wait: Wait | null = null;
  const { context } = pass.observed.operator;
  for (const { name, service } of desiredServices(draftCluster(pass), context)) {
    const live = pass.observed.services.get(name);
    const isOwned = live !== undefined && ownsObject(pass.cluster, live);
    if (live?.metadata.deletionTimestamp) {
      if (service) wait = { because: `service ${name} is still being removed`, requeueAfterMs: 1_000 };
    } else if (live && !isOwned) {
      const message = `refusing to reconcile service: ${name}, not owned by the cluster`;
      if (service) problems.push({ event: "ServiceConflict", message });
    } else if (!live && service) {
      pass.actions.push({
        kind: "create",
        object: { ...service },
        mustOwn: true,
        reason: `service ${name} does not exist`,
      });
    } else if (live && !service) {
      planDeletion(pass, live, `service ${name} is disabled`);
    } else if (live && service) {
      planChange(pass, live, service);
    }
  }
  const owned = [...pass.observed.services.values()].filter((it) => ownsObject(pass.cluster, it));
  for (const name of obsoleteManagedServices(pass.cluster, owned)) {
    const live = pass.observed.services.get(name);
    if (live && !live.metadata.deletionTimestamp) planDeletion(pass, live, `service ${name} is no longer described`);
  }
  return { problems, wait };
}

function planChange(pass: Pass, live: Service, wanted: Service): void {
  const update = planServiceUpdate(live, wanted);
  switch (update.kind) {
    case "none":
      return;
    case "update":
      pass.actions.push({ kind: "update", object: { ...update.service }, reason: update.reason });
      return;
    case "recreate":
      planDeletion(pass, live, update.reason);
      return;
    default:
      update satisfies never;
  }
}

function planDeletion(pass: Pass, service: Service, reason: string): void {
  const target = refTo(service);
  pass.actions.push({ kind: "delete", target, propagation: "Background", bestEffort: false, reason });
}
