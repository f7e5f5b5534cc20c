import { Chart, Testing } from "cdk8s";
import { describe, expect, test } from "vitest";
import { Operator, type OperatorOptions } from "../../../constructs/index.ts";
import { defaultBuildContext } from "../../../src/build/context.ts";
import { createAdmissionHandlers } from "../../../src/operator/admission-handlers.ts";

interface Manifest {
  kind: string;
  metadata: { name: string; namespace?: string };
  [field: string]: unknown;
}

function synth(options: OperatorOptions = {}): Manifest[] {
  const chart = new Chart(Testing.app(), "test");
  new Operator(chart, "operator", options);
  return Testing.synth(chart);
}

function podSpec(manifests: Manifest[]) {
  const deployment = manifests.find(({ kind }) => kind === "Deployment") as unknown as {
    spec: {
      template: { spec: { securityContext: object; containers: { securityContext: object; args: string[] }[] } };
    };
  };
  return deployment.spec.template.spec;
}

describe("Operator", () => {
  test("gives its objects the names that people and suites expect", () => {
    const names = synth()
      .filter(({ kind }) => kind !== "CustomResourceDefinition")
      .map(({ kind, metadata }) => `${kind}/${metadata.name}`);
    expect(names).toEqual(
      expect.arrayContaining([
        "Namespace/cnpg-system",
        "Deployment/cnpg-controller-manager",
        "ServiceAccount/cnpg-manager",
        "ClusterRole/cnpg-manager",
        "ClusterRoleBinding/cnpg-manager-rolebinding",
        "Service/cnpg-webhook-service",
        "ConfigMap/cnpg-default-monitoring",
        "MutatingWebhookConfiguration/cnpg-mutating-webhook-configuration",
        "ValidatingWebhookConfiguration/cnpg-validating-webhook-configuration",
      ]),
    );
  });

  test("serves profiles only when it is asked to", () => {
    const args = (options: OperatorOptions) => podSpec(synth(options)).containers[0]?.args;
    expect(args({})).not.toContain("--pprof-server");
    expect(args({ profiler: true })).toContain("--pprof-server");
  });

  test("carries the eleven definitions, or none when they are installed apart", () => {
    const count = (options: OperatorOptions) =>
      synth(options).filter(({ kind }) => kind === "CustomResourceDefinition").length;
    expect(count({})).toBe(11);
    expect(count({ crds: false })).toBe(0);
  });

  test("meets the restricted pod security rules, pod and container alike", () => {
    const { securityContext, containers } = podSpec(synth());
    expect(securityContext).toEqual({ runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } });
    expect(containers[0]?.securityContext).toEqual({
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
    const { securityContext, containers } = podSpec(
      synth({
        security: {
          runAsUser: false,
          runAsNonRoot: false,
          readOnlyRootFilesystem: false,
          seccompProfile: false,
          dropCapabilities: false,
        },
      }),
    );
    expect(securityContext).toEqual({});
    expect(containers[0]?.securityContext).toEqual({ allowPrivilegeEscalation: false });
  });

  test("sends to the webhooks only what the operator serves", () => {
    const handlers = createAdmissionHandlers(defaultBuildContext, { volumeSnapshots: false });
    const paths = synth()
      .filter(({ kind }) => kind.endsWith("WebhookConfiguration"))
      .flatMap(({ webhooks }) => webhooks as { clientConfig: { service: { path: string } } }[])
      .map(({ clientConfig }) => clientConfig.service.path);
    expect(paths.sort()).toEqual([...handlers.keys()].sort());
  });

  test("writes no webhook configuration when webhooks are off, and keeps the readiness service", () => {
    const kinds = synth({ webhooks: false }).map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind.endsWith("WebhookConfiguration"))).toEqual([]);
    expect(kinds).toContain("Service");
  });

  test.each([
    [{ replicas: -1 }, /"replicas" is -1/],
    [{ maxConcurrentReconciles: 0 }, /"maxConcurrentReconciles" is 0/],
  ])("refuses %j", (options, says) => {
    expect(() => synth(options)).toThrow(says);
  });
});
