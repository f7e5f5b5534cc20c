import type { Pooler } from "../../api/generated/pooler.ts";
import { type FieldIssue, invalid, required } from "./field-issue.ts";
import { pgbouncerParameters } from "./pgbouncer-parameters.ts";
import { when } from "./rule.ts";
import { isValidationDisabled, validationWarnings } from "./warnings.ts";

/** What is wrong with a Pooler. */
export function validatePooler(pooler: Pooler): FieldIssue[] {
  if (isValidationDisabled(pooler)) return [];
  const cluster = pooler.spec.cluster?.name ?? "";
  return [
    ...checkPgbouncer(pooler),
    ...when(cluster === "", invalid("spec.cluster.name", cluster, "must specify a cluster name")),
    ...when(
      cluster !== "" && pooler.metadata.name === cluster,
      invalid("metadata.name", cluster, "the pooler resource cannot have the same name of a cluster"),
    ),
  ];
}

/** Warnings about a Pooler. */
export function poolerWarnings(pooler: Pooler): string[] {
  const { pgbouncer, cluster, monitoring } = pooler.spec;
  const quote = (text: string | undefined) => JSON.stringify(text ?? "");
  const deprecated = [
    monitoring?.enablePodMonitor,
    monitoring?.podMonitorRelabelings,
    monitoring?.podMonitorMetricRelabelings,
  ].some(Boolean);
  return [
    ...validationWarnings(pooler),
    ...(isManual(pooler)
      ? [
          `The operator won't handle the Pooler ${quote(pooler.metadata.name)} integration with the Cluster ` +
            `${quote(cluster.name)} (${quote(pooler.metadata.namespace)}). Manually configure it as described in the docs.`,
        ]
      : []),
    ...(pgbouncer?.authQuerySecret ? ["The .spec.pgbouncer.authQuerySecret field has been deprecated"] : []),
    ...(deprecated
      ? [
          "spec.monitoring is deprecated and will be removed in a future release. " +
            "Create a PodMonitor of your own for the pooler's pods",
        ]
      : []),
  ];
}

function checkPgbouncer(pooler: Pooler): FieldIssue[] {
  const { pgbouncer, monitoring } = pooler.spec;
  if (!pgbouncer) return [invalid("spec.pgbouncer", null, "required pgbouncer configuration")];
  const { authQuery, authQuerySecret, parameters = {}, clientTLSSecret } = pgbouncer;
  const path = "spec.pgbouncer";
  return [
    ...when(
      Boolean(authQuerySecret?.name) && !authQuery,
      invalid(`${path}.authQuery`, authQuery ?? "", "must specify an auth query when providing an auth query secret"),
    ),
    ...when(
      Boolean(authQuery) && !authQuerySecret?.name,
      invalid(
        `${path}.authQuerySecret.name`,
        authQuerySecret?.name ?? "",
        "must specify an existing auth query secret when providing an auth query secret",
      ),
    ),
    ...Object.keys(parameters)
      .filter((name) => !pgbouncerParameters.has(name))
      .map((name) => invalid(`${path}.parameters`, name, "Invalid or reserved parameter")),
    ...when(
      Boolean(monitoring?.tls?.enabled && monitoring.enablePodMonitor) && !clientTLSSecret?.name,
      required(
        `${path}.clientTLSSecret`,
        "clientTLSSecret is required when spec.monitoring.tls.enabled is true and spec.monitoring.enablePodMonitor " +
          "is true: Prometheus verifies the certificate under the pooler's own name",
      ),
    ),
  ];
}

function isManual({ spec }: Pooler): boolean {
  const { authQuery, authQuerySecret, serverTLSSecret } = spec.pgbouncer ?? {};
  return Boolean(authQuery || authQuerySecret?.name || serverTLSSecret?.name);
}
