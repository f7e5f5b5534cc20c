import { readFileSync } from "node:fs";
import { parseAllDocuments } from "yaml";
import type {
  MutatingWebhookConfiguration,
  ValidatingWebhookConfiguration,
} from "../../../src/api/generated/kubernetes.ts";
import { resources } from "../../../src/kube/resources.ts";
import type { KubeObject, ResourceType } from "../../../src/ports/kube-api.ts";
import { writeAccountKubeconfig } from "./service-account.ts";
import type { World } from "./world.ts";

const access = (kind: string, plural: string): ResourceType<KubeObject> => ({
  group: "rbac.authorization.k8s.io",
  version: "v1",
  kind,
  plural,
  namespaced: false,
});

/** The operator's synthesized installation but for its Deployment, and a kubeconfig of its service account. */
export interface Installation {
  namespace: string;
  kubeconfig: string;
  remove(): void;
}

/**
 * Installs what `dist/operator.k8s.yaml` says, so that a right which the operator uses and does not have is a failure.
 * With `webhookPort` the API server calls the webhooks of a program that listens there.
 */
export async function installOperator(world: World, options: { webhookPort?: number } = {}): Promise<Installation> {
  const namespace = "cnpg-system";
  const manifests = parseAllDocuments(readFileSync("dist/operator.k8s.yaml", "utf8")).map(
    (it) => it.toJS() as KubeObject,
  );
  const types: Record<string, ResourceType<KubeObject>> = {
    Namespace: resources.namespaces,
    ServiceAccount: resources.serviceAccounts,
    ConfigMap: resources.configMaps,
    Service: resources.services,
    ClusterRole: access("ClusterRole", "clusterroles"),
    ClusterRoleBinding: access("ClusterRoleBinding", "clusterrolebindings"),
    MutatingWebhookConfiguration: resources.mutatingWebhookConfigurations as ResourceType<KubeObject>,
    ValidatingWebhookConfiguration: resources.validatingWebhookConfigurations as ResourceType<KubeObject>,
  };
  for (const manifest of manifests) {
    const type = types[manifest.kind ?? ""];
    const { webhookPort } = options;
    const adapted = webhookPort === undefined ? loosened(manifest) : redirected(manifest, webhookPort);
    if (type) await world.api.create(type, adapted);
  }
  return { namespace, ...(await writeAccountKubeconfig(world, namespace, "cnpg-manager")) };
}

/** The API server of a test cannot reach our Service: its calls may fail, the configuration is only read. */
function loosened(manifest: KubeObject): KubeObject {
  if (!manifest.kind?.endsWith("WebhookConfiguration")) return manifest;
  const configuration = manifest as MutatingWebhookConfiguration | ValidatingWebhookConfiguration;
  const webhooks = (configuration.webhooks ?? []).map((it) => ({ ...it, failurePolicy: "Ignore", timeoutSeconds: 1 }));
  return { ...manifest, webhooks } as KubeObject;
}

/** There is no kube-proxy behind the API server of a test: its Service leads to loopback, and all else stays as it is. */
function redirected(manifest: KubeObject, port: number): KubeObject {
  if (manifest.kind === "Service") {
    const spec = { type: "ExternalName", externalName: "127.0.0.1" };
    return { ...manifest, spec } as KubeObject;
  }
  if (!manifest.kind?.endsWith("WebhookConfiguration")) return manifest;
  const configuration = manifest as MutatingWebhookConfiguration | ValidatingWebhookConfiguration;
  const webhooks = (configuration.webhooks ?? []).map((it) => ({
    ...it,
    clientConfig: { ...it.clientConfig, service: { ...it.clientConfig.service, port } },
  }));
  return { ...manifest, webhooks } as KubeObject;
}
