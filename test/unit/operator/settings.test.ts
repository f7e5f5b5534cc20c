import { describe, expect, it } from "vitest";
import { compileSettings } from "../../../src/operator/settings.ts";

describe("settings", () => {
  it("have defaults", () => {
    const settings = compileSettings([]);
    expect(settings.watchNamespaces).toEqual([]);
    expect(settings.manageWebhookConfigurations).toBe(true);
    expect(settings.context.certificateDurationDays).toBe(90);
    expect(settings.drainTaints).toContain("karpenter.sh/disrupted");
  });

  it.each([
    ["a later source wins", [{ POSTGRES_IMAGE_NAME: "a:17" }, { POSTGRES_IMAGE_NAME: "b:17" }], "b:17"],
    ["an empty text counts as absent", [{ POSTGRES_IMAGE_NAME: "a:17" }, { POSTGRES_IMAGE_NAME: "" }], "a:17"],
  ])("%s", (_, sources, expected) => {
    expect(compileSettings(sources).context.defaultPostgresImage).toBe(expected);
  });

  it("take an empty text of a ConfigMap for none, where none is a choice, and one of the environment for nothing said", () => {
    const environment = { MONITORING_QUERIES_CONFIGMAP: "cnpg-default-monitoring", INHERITED_LABELS: "a,b" };
    const { context } = compileSettings([environment, { MONITORING_QUERIES_CONFIGMAP: "", INHERITED_LABELS: "" }, {}]);
    expect([context.monitoringQueriesConfigMap, context.inheritedLabels]).toEqual(["", []]);
    expect(compileSettings([environment, {}, {}]).context.monitoringQueriesConfigMap).toBe("cnpg-default-monitoring");
    expect(compileSettings([{ PULL_SECRET_NAME: "" }, {}, {}]).context.pullSecretName).toBe("cnpg-pull-secret");
  });

  it("keep the earlier value when a number or a switch cannot be read", () => {
    const settings = compileSettings([
      { CERTIFICATE_DURATION: "30", CREATE_ANY_SERVICE: "true", INSTANCES_ROLLOUT_DELAY: "2" },
      { CERTIFICATE_DURATION: "soon", CREATE_ANY_SERVICE: "perhaps" },
    ]);
    expect(settings.context.certificateDurationDays).toBe(30);
    expect(settings.context.createAnyService).toBe(true);
    expect(settings.instancesRolloutDelayMs).toBe(2_000);
  });

  it("fall back when a number of days is not positive", () => {
    const { context } = compileSettings([{ CERTIFICATE_DURATION: "0", EXPIRING_CHECK_THRESHOLD: "-1" }]);
    expect([context.certificateDurationDays, context.expiringThresholdDays]).toEqual([90, 7]);
  });

  it("split lists at commas and trim them", () => {
    expect(compileSettings([{ WATCH_NAMESPACE: " a, b,,c " }]).watchNamespaces).toEqual(["a", "b", "c"]);
  });
});
