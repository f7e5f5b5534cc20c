import type { Cluster } from "../api/generated/cluster.ts";
import type { BuildContext } from "../build/context.ts";
import { validateClusterCreate, validateClusterUpdate } from "../schema/admission/cluster.ts";
import { applyDefaults } from "../schema/admission/defaults.ts";
import { formatRefusal } from "../schema/admission/field-issue.ts";
import { clusterWarnings } from "../schema/admission/warnings.ts";
import { admissionContextOf } from "./admission-guard.ts";
import type { AdmissionHandler, AdmissionHandlers } from "./admission-review.ts";

/** The webhooks that this operator serves, by path (reference: cluster controller §9.3). */
export function createAdmissionHandlers(context: BuildContext): AdmissionHandlers {
  const admission = admissionContextOf(context);
  return new Map<string, AdmissionHandler>([
    [
      "/mutate-postgresql-cnpg-io-v1-cluster",
      ({ object }) => ({
        kind: "changed",
        object: applyDefaults(object as Cluster, { mode: "preserve", settings: admission.settings }),
      }),
    ],
    [
      "/validate-postgresql-cnpg-io-v1-cluster",
      ({ operation, object, oldObject }) => {
        const cluster = object as Cluster;
        const isUpdate = operation === "UPDATE" && oldObject !== null && oldObject !== undefined;
        const warnings = clusterWarnings(cluster);
        const issues = isUpdate
          ? validateClusterUpdate(cluster, oldObject as Cluster, admission)
          : validateClusterCreate(cluster, admission);
        if (issues.length === 0) return { kind: "allowed", warnings };
        const group = isUpdate ? "cluster.cnpg.io" : "postgresql.cnpg.io";
        const message = formatRefusal(`Cluster.${group}`, cluster.metadata.name ?? "", issues);
        return { kind: "denied", message, code: 422, reason: "Invalid", warnings };
      },
    ],
  ]);
}
