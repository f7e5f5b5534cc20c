import { k8s } from "cdk8s-plus-28";
import type { Construct } from "constructs";
import { resourceRequirements } from "../base/program-resources.ts";
import { containerSecurity, podSecurity } from "../base/program-security.ts";
import { pluginHealthPort, pluginNames, pluginPodLabels, pluginPort } from "./names.ts";
import type { CompiledPluginOptions } from "./options.ts";

/** The plugin's Deployment. */
export function addDeployment(scope: Construct, options: CompiledPluginOptions): void {
  new k8s.KubeDeployment(scope, "Deployment", {
    metadata: { name: pluginNames.deployment, namespace: options.namespace, labels: pluginPodLabels },
    spec: {
      replicas: options.replicas,
      selector: { matchLabels: pluginPodLabels },
      // The calls keep no state: the old pod serves until the new one does.
      strategy: {
        type: "RollingUpdate",
        rollingUpdate: { maxUnavailable: k8s.IntOrString.fromNumber(0), maxSurge: k8s.IntOrString.fromNumber(1) },
      },
      template: {
        metadata: { labels: pluginPodLabels },
        spec: {
          serviceAccountName: pluginNames.serviceAccount,
          terminationGracePeriodSeconds: 15,
          securityContext: podSecurity(options.security),
          containers: [container(options)],
          volumes: volumes(options),
        },
      },
    },
  });
}

function container(options: CompiledPluginOptions): k8s.Container {
  const self = options.certificates === "self";
  const { metricsPort } = options;
  return {
    name: "barman-cloud",
    image: options.image,
    imagePullPolicy: options.imagePullPolicy,
    args: [
      "operator",
      "--server-cert=/server/tls.crt",
      "--server-key=/server/tls.key",
      "--client-cert=/client/tls.crt",
      `--server-address=:${pluginPort}`,
      "--leader-elect",
      `--log-level=${options.logLevel}`,
      ...(metricsPort === undefined ? [] : [`--metrics-bind-address=:${metricsPort}`]),
      ...(self ? [`--certificates-service=${pluginNames.service}`] : []),
    ],
    env: [
      { name: "SIDECAR_IMAGE", value: options.sidecarImage },
      { name: "POD_NAMESPACE", valueFrom: { fieldRef: { fieldPath: "metadata.namespace" } } },
    ],
    ports: [
      { name: "grpc", containerPort: pluginPort, protocol: "TCP" },
      { name: "health", containerPort: pluginHealthPort, protocol: "TCP" },
      ...(metricsPort === undefined ? [] : [{ name: "metrics", containerPort: metricsPort, protocol: "TCP" }]),
    ],
    readinessProbe: {
      tcpSocket: { port: k8s.IntOrString.fromNumber(pluginPort) },
      initialDelaySeconds: 1,
      periodSeconds: 5,
    },
    livenessProbe: {
      httpGet: { path: "/healthz", port: k8s.IntOrString.fromNumber(pluginHealthPort) },
      initialDelaySeconds: 15,
      periodSeconds: 20,
      timeoutSeconds: 5,
    },
    resources: resourceRequirements(options.resources),
    securityContext: containerSecurity(options.security),
    volumeMounts: [
      { name: "server", mountPath: "/server" },
      { name: "client", mountPath: "/client" },
    ],
  };
}

/** Made by the plugin the files live in memory only; the Secrets are where they are kept. */
function volumes({ certificates }: CompiledPluginOptions): k8s.Volume[] {
  if (certificates === "cert-manager") {
    return [
      { name: "server", secret: { secretName: pluginNames.serverSecret } },
      { name: "client", secret: { secretName: pluginNames.clientSecret } },
    ];
  }
  const memory = { medium: "Memory", sizeLimit: k8s.Quantity.fromString("1Mi") };
  return [
    { name: "server", emptyDir: memory },
    { name: "client", emptyDir: memory },
  ];
}
