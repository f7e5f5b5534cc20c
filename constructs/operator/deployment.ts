import { k8s } from "cdk8s-plus-28";
import type { Construct } from "constructs";
import { ports } from "../../src/api/constants.ts";
import { resourceRequirements } from "../base/program-resources.ts";
import { containerSecurity, podSecurity } from "../base/program-security.ts";
import type { CompiledOperatorOptions } from "./options.ts";

/** Label by which the operator finds its own Deployment, and by which people find its pods. */
export const operatorLabels = { "app.kubernetes.io/name": "cloudnative-pg" };

const webhookCertificates = "/run/secrets/cnpg.io/webhook";

/** The operator's Deployment. */
export function addDeployment(scope: Construct, options: CompiledOperatorOptions): void {
  new k8s.KubeDeployment(scope, "Deployment", {
    metadata: { name: "cnpg-controller-manager", namespace: options.namespace, labels: operatorLabels },
    spec: {
      replicas: options.replicas,
      selector: { matchLabels: operatorLabels },
      template: {
        metadata: { labels: operatorLabels },
        spec: {
          serviceAccountName: "cnpg-manager",
          terminationGracePeriodSeconds: 10,
          securityContext: podSecurity(options.security),
          containers: [managerContainer(options)],
          volumes: [
            { name: "scratch-data", emptyDir: {} },
            {
              name: "webhook-certificates",
              secret: { secretName: "cnpg-webhook-cert", defaultMode: 420, optional: true },
            },
          ],
        },
      },
    },
  });
}

function managerContainer(options: CompiledOperatorOptions): k8s.Container {
  return {
    name: "manager",
    image: options.image,
    imagePullPolicy: options.imagePullPolicy,
    command: ["/manager"],
    args: [
      "controller",
      "--leader-elect",
      `--max-concurrent-reconciles=${options.maxConcurrentReconciles}`,
      "--config-map-name=cnpg-controller-manager-config",
      "--secret-name=cnpg-controller-manager-config",
      `--webhook-port=${ports.operatorWebhook}`,
      `--log-level=${options.logLevel}`,
      ...(options.profiler ? ["--pprof-server"] : []),
    ],
    env: [
      { name: "OPERATOR_IMAGE_NAME", value: options.image },
      { name: "OPERATOR_NAMESPACE", valueFrom: { fieldRef: { fieldPath: "metadata.namespace" } } },
      { name: "MONITORING_QUERIES_CONFIGMAP", value: "cnpg-default-monitoring" },
      ...Object.entries(options.settings).map(([name, value]) => ({ name, value })),
    ],
    ports: [
      { name: "metrics", containerPort: ports.operatorMetrics, protocol: "TCP" },
      { name: "webhook-server", containerPort: ports.operatorWebhook, protocol: "TCP" },
    ],
    startupProbe: { ...readyz(), periodSeconds: 2, failureThreshold: 30 },
    livenessProbe: { ...readyz(), periodSeconds: 10 },
    readinessProbe: { ...readyz(), periodSeconds: 5 },
    resources: resourceRequirements(options.resources),
    securityContext: containerSecurity(options.security),
    volumeMounts: [
      { name: "scratch-data", mountPath: "/controller" },
      { name: "webhook-certificates", mountPath: webhookCertificates },
    ],
  };
}

function readyz(): k8s.Probe {
  return {
    httpGet: {
      path: "/readyz",
      port: k8s.IntOrString.fromNumber(ports.operatorWebhook),
      scheme: "HTTPS",
    },
    timeoutSeconds: 5,
  };
}
