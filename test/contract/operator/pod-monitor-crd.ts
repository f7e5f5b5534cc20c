import { waitFor } from "../../../local/process/wait.ts";
import { type OpaqueObject, resources } from "../../../src/kube/resources.ts";
import type { World } from "./world.ts";

/** As much of the Prometheus operator's definition as a scrape target needs, with the one default that it fills in. */
export async function installPodMonitors(world: World): Promise<void> {
  const rules = {
    type: "array",
    items: { type: "object", properties: { action: { type: "string", default: "replace" } }, ...keepRest },
  };
  const endpoint = { type: "object", properties: { relabelings: rules, metricRelabelings: rules }, ...keepRest };
  const spec = {
    type: "object",
    properties: { podMetricsEndpoints: { type: "array", items: endpoint } },
    ...keepRest,
  };
  const definition: OpaqueObject = {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "podmonitors.monitoring.coreos.com" },
    spec: {
      group: "monitoring.coreos.com",
      scope: "Namespaced",
      names: { kind: "PodMonitor", listKind: "PodMonitorList", plural: "podmonitors", singular: "podmonitor" },
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: "object", properties: { spec } } },
        },
      ],
    },
  };
  await world.api.create(resources.customResourceDefinitions, definition);
  await waitFor("PodMonitors are served", () => world.api.serves(resources.podMonitors), { timeoutMs: 60_000 });
}

const keepRest = { "x-kubernetes-preserve-unknown-fields": true };
