import { randomUUID } from "node:crypto";
import type { InstanceSettings } from "./settings.ts";

/** What every record of one pass over an object carries, by the original's keys (reference: instance manager §8). */
export function passFields(
  kind: string,
  { namespace, name }: { namespace: string; name: string },
  settings: Pick<InstanceSettings, "podName" | "clusterName">,
): Record<string, unknown> {
  const words = kind.replace(/(?<=[a-z])(?=[A-Z])/g, "-").toLowerCase();
  return {
    controller: `instance-${words}`,
    controllerGroup: "postgresql.cnpg.io",
    controllerKind: kind,
    [kind]: { name, namespace },
    namespace,
    name,
    reconcileID: randomUUID(),
    instance: settings.podName,
    cluster: settings.clusterName,
  };
}
