import { k8s } from "cdk8s-plus-28";
import type { Construct } from "constructs";
import { cnpgGroup, cnpgVersion, ports } from "../../src/api/constants.ts";
import { operatorLabels } from "./deployment.ts";
import type { CompiledOperatorOptions } from "./options.ts";

const serviceName = "cnpg-webhook-service";

/** Kinds whose defaulting the operator serves: kind in lower case → plural. Only served paths may stand here. */
const mutating: Readonly<Record<string, string>> = {
  backup: "backups",
  cluster: "clusters",
  database: "databases",
  scheduledbackup: "scheduledbackups",
};

/** Kinds whose validation the operator serves. */
const validating: Readonly<Record<string, string>> = {
  backup: "backups",
  cluster: "clusters",
  database: "databases",
  pooler: "poolers",
  scheduledbackup: "scheduledbackups",
};

/** The webhook Service and, unless switched off, the configurations that send requests to it. */
export function addWebhooks(scope: Construct, options: CompiledOperatorOptions): void {
  new k8s.KubeService(scope, "WebhookService", {
    metadata: { name: serviceName, namespace: options.namespace },
    spec: {
      selector: operatorLabels,
      ports: [{ port: 443, targetPort: k8s.IntOrString.fromNumber(ports.operatorWebhook) }],
    },
  });
  if (!options.webhooks) return;
  new k8s.KubeMutatingWebhookConfiguration(scope, "MutatingWebhooks", {
    metadata: { name: "cnpg-mutating-webhook-configuration" },
    webhooks: Object.entries(mutating).map(([kind, plural]) => webhook("m", "mutate", kind, plural, options)),
  });
  new k8s.KubeValidatingWebhookConfiguration(scope, "ValidatingWebhooks", {
    metadata: { name: "cnpg-validating-webhook-configuration" },
    webhooks: Object.entries(validating).map(([kind, plural]) => webhook("v", "validate", kind, plural, options)),
  });
}

function webhook(
  prefix: string,
  verb: string,
  kind: string,
  plural: string,
  options: CompiledOperatorOptions,
): k8s.MutatingWebhook & k8s.ValidatingWebhook {
  return {
    name: `${prefix}${kind}.cnpg.io`,
    admissionReviewVersions: ["v1"],
    clientConfig: {
      service: {
        name: serviceName,
        namespace: options.namespace,
        path: `/${verb}-${cnpgGroup.replaceAll(".", "-")}-${cnpgVersion}-${kind}`,
      },
    },
    failurePolicy: "Fail",
    sideEffects: "None",
    rules: [
      { apiGroups: [cnpgGroup], apiVersions: [cnpgVersion], operations: ["CREATE", "UPDATE"], resources: [plural] },
    ],
  };
}
