import { Chart, Testing } from "cdk8s";
import { describe, expect, test } from "vitest";
import { BarmanCloudPlugin, type BarmanCloudPluginOptions } from "../../../constructs/index.ts";
import type { ClusterRole, Deployment, Role, Service } from "../../../src/api/generated/kubernetes.ts";
import { buildAccessRole } from "../../../src/plugin/barman-cloud/access-role.ts";
import { anArchivedCluster, anObjectStore } from "../../support/barman-cloud-objects.ts";

interface Manifest {
  kind: string;
  metadata: { name: string; namespace?: string };
}

function synth(options: BarmanCloudPluginOptions = {}): Manifest[] {
  const chart = new Chart(Testing.app(), "test");
  new BarmanCloudPlugin(chart, "plugin", options);
  return Testing.synth(chart);
}

const names = (manifests: Manifest[]) => manifests.map(({ kind, metadata }) => `${kind}/${metadata.name}`);
const find = <T>(manifests: Manifest[], kind: string, name: string) =>
  manifests.find((it) => it.kind === kind && it.metadata.name === name) as unknown as T;

const podSpec = (options: BarmanCloudPluginOptions = {}) =>
  find<Deployment>(synth(options), "Deployment", "barman-cloud").spec?.template.spec;

describe("BarmanCloudPlugin", () => {
  test("gives its objects the names that people and suites expect", () => {
    expect(names(synth())).toEqual([
      "CustomResourceDefinition/objectstores.barmancloud.cnpg.io",
      "ValidatingAdmissionPolicy/barman-plugin-objectstore-credentials",
      "ValidatingAdmissionPolicyBinding/barman-plugin-objectstore-credentials",
      "ServiceAccount/plugin-barman-cloud",
      "ClusterRole/plugin-barman-cloud",
      "ClusterRoleBinding/plugin-barman-cloud-binding",
      "Role/barman-plugin-leader-election-role",
      "RoleBinding/barman-plugin-leader-election-rolebinding",
      "Role/barman-plugin-certificates-role",
      "RoleBinding/barman-plugin-certificates-rolebinding",
      "ClusterRole/barman-plugin-metrics-auth-role",
      "ClusterRoleBinding/barman-plugin-metrics-auth-rolebinding",
      "ClusterRole/barman-plugin-metrics-reader",
      "ClusterRole/barman-plugin-objectstore-editor-role",
      "ClusterRole/barman-plugin-objectstore-viewer-role",
      "Service/barman-cloud",
      "Deployment/barman-cloud",
    ]);
    expect(names(synth({ crds: false, storePolicy: false }))[0]).toBe("ServiceAccount/plugin-barman-cloud");
  });

  test("is found by the operator through its Service", () => {
    const service = find<Service>(synth(), "Service", "barman-cloud");
    expect(service.metadata).toMatchObject({
      namespace: "cnpg-system",
      labels: { "cnpg.io/pluginName": "barman-cloud.cloudnative-pg.io" },
      annotations: {
        "cnpg.io/pluginClientSecret": "barman-cloud-client-tls",
        "cnpg.io/pluginServerSecret": "barman-cloud-server-tls",
        "cnpg.io/pluginPort": "9090",
      },
    });
  });

  test("hands its own image to the sidecars unless another is named", () => {
    const env = (options: BarmanCloudPluginOptions) =>
      find<Deployment>(synth(options), "Deployment", "barman-cloud").spec?.template.spec?.containers[0]?.env?.[0];
    expect(env({ image: "plugin:1" })).toEqual({ name: "SIDECAR_IMAGE", value: "plugin:1" });
    expect(env({ image: "plugin:1", sidecarImage: "sidecar:1" })).toEqual({
      name: "SIDECAR_IMAGE",
      value: "sidecar:1",
    });
  });

  test("meets the restricted pod security rules, pod and container alike", () => {
    const pod = podSpec();
    expect(pod?.securityContext).toEqual({ runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } });
    expect(pod?.containers[0]?.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      capabilities: { drop: ["ALL"] },
      readOnlyRootFilesystem: true,
      runAsNonRoot: true,
      runAsUser: 10001,
      runAsGroup: 10001,
      seccompProfile: { type: "RuntimeDefault" },
    });
  });

  test("leaves each part of the security context to the platform when asked", () => {
    const security = {
      runAsUser: false,
      runAsNonRoot: false,
      readOnlyRootFilesystem: false,
      seccompProfile: false,
      dropCapabilities: false,
    } as const;
    const pod = podSpec({ security });
    expect(pod?.securityContext).toEqual({});
    expect(pod?.containers[0]?.securityContext).toEqual({ allowPrivilegeEscalation: false });
    expect(podSpec({ security: { runAsUser: 1234 } })?.containers[0]?.securityContext).toMatchObject({
      runAsUser: 1234,
      runAsGroup: 1234,
      readOnlyRootFilesystem: true,
    });
  });

  test("leaves certificates to cert-manager when asked, and then may not write Secrets", () => {
    const manifests = synth({ certificates: "cert-manager" });
    expect(names(manifests)).toEqual(
      expect.arrayContaining([
        "Issuer/selfsigned-issuer",
        "Certificate/barman-cloud-server",
        "Certificate/barman-cloud-client",
      ]),
    );
    expect(names(manifests)).not.toContain("Role/barman-plugin-certificates-role");
    const pod = find<Deployment>(manifests, "Deployment", "barman-cloud").spec?.template.spec;
    expect(pod?.volumes?.map(({ secret }) => secret?.secretName)).toEqual([
      "barman-cloud-server-tls",
      "barman-cloud-client-tls",
    ]);
    expect(pod?.containers[0]?.args).not.toContain("--certificates-service=barman-cloud");
  });

  test("may do everything that it grants by a Role, which is what the API server asks for", () => {
    const own = find<ClusterRole>(synth(), "ClusterRole", "plugin-barman-cloud").rules ?? [];
    const granted = buildAccessRole(anArchivedCluster(), [anObjectStore("own")]) as Role;
    for (const { apiGroups = [], resources = [], verbs } of granted.rules ?? []) {
      const held = own.find(
        (it) => it.apiGroups?.includes(apiGroups[0] ?? "") && it.resources?.includes(resources[0] ?? ""),
      );
      expect(held?.verbs).toEqual(expect.arrayContaining([...verbs]));
      expect(held?.resourceNames).toBeUndefined();
    }
    expect(own.filter(({ resources }) => resources?.includes("secrets")).flatMap(({ verbs }) => verbs)).toEqual([
      "get",
      "list",
      "watch",
    ]);
  });

  test("tells metrics where asked to, to those who hold its role for that", () => {
    const containerOf = (options: BarmanCloudPluginOptions) =>
      find<Deployment>(synth(options), "Deployment", "barman-cloud").spec?.template.spec?.containers[0];
    expect(containerOf({})?.args?.join()).not.toContain("metrics");
    const container = containerOf({ metricsPort: 8443 });
    expect(container?.args).toContain("--metrics-bind-address=:8443");
    expect(container?.ports).toContainEqual({ name: "metrics", containerPort: 8443, protocol: "TCP" });
    const reader = find<ClusterRole>(synth(), "ClusterRole", "barman-plugin-metrics-reader");
    expect(reader.rules).toEqual([{ nonResourceURLs: ["/metrics"], verbs: ["get"] }]);
    const auth = find<ClusterRole>(synth(), "ClusterRole", "barman-plugin-metrics-auth-role");
    expect(auth.rules?.map(({ resources, verbs }) => [resources, verbs])).toEqual([
      [["tokenreviews"], ["create"]],
      [["subjectaccessreviews"], ["create"]],
    ]);
  });

  test("refuses options that cannot work, by name", () => {
    expect(() => synth({ replicas: -1 })).toThrow(/"replicas" is -1/);
    expect(() => synth({ certificates: "none" as never })).toThrow(/"certificates" is none/);
    expect(() => synth({ metricsPort: 0 })).toThrow(/"metricsPort" is 0/);
  });
});
