// The finalizer by which the operator holds a plugin's Service back until it has let go of the plugin (reference: CNPG-I §2.2).
import type { Service } from "../../api/generated/kubernetes.ts";
import { pluginService } from "../../api/plugin-service.ts";
import { resources } from "../../kube/resources.ts";
import type { EventSink } from "../../ports/event-sink.ts";
import { isKubeError, type KubeApi } from "../../ports/kube-api.ts";

interface Deps {
  api: KubeApi;
  events: EventSink;
}

/** Adds the finalizer where it is missing. */
export async function holdService({ api, events }: Deps, service: Service): Promise<void> {
  const { finalizers = [] } = service.metadata;
  if (finalizers.includes(pluginService.finalizer)) return;
  if (!(await write(api, service, [...finalizers, pluginService.finalizer]))) return;
  events.record(referTo(service), {
    type: "Normal",
    reason: "FinalizerAdded",
    message: `The Service is held back from deletion by ${pluginService.finalizer} until the plugin is let go`,
  });
}

/** Takes it away from a Service that is to go; the plugin must be let go before. */
export async function letServiceGo({ api, events }: Deps, service: Service): Promise<void> {
  const { finalizers = [] } = service.metadata;
  if (!finalizers.includes(pluginService.finalizer)) return;
  const kept = finalizers.filter((it) => it !== pluginService.finalizer);
  try {
    if (!(await write(api, service, kept))) return;
  } catch (error) {
    const message = `${pluginService.finalizer} cannot be taken away: ${error instanceof Error ? error.message : error}`;
    events.record(referTo(service), { type: "Warning", reason: "FinalizerRemovalFailed", message });
    throw error;
  }
  events.record(referTo(service), { type: "Normal", reason: "PluginCleanup", message: "The plugin is let go" });
}

/** False when another writer was first: its event brings the Service here again. */
async function write(api: KubeApi, service: Service, finalizers: readonly string[]): Promise<boolean> {
  const { namespace = "", name = "", resourceVersion } = service.metadata;
  const body = { metadata: { resourceVersion, finalizers } };
  try {
    await api.patch(resources.services, { namespace, name }, { type: "merge", body });
    return true;
  } catch (error) {
    if (isKubeError(error, "conflict", "notFound")) return false;
    throw error;
  }
}

/** What an event about the Service refers to. */
export function referTo(service: Service) {
  const { namespace = "", name = "", uid = "" } = service.metadata;
  return { apiVersion: "v1", kind: "Service", namespace, name, uid };
}
