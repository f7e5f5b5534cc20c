import type { Backup } from "../api/generated/backup.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import type { Database } from "../api/generated/database.ts";
import type { Pooler } from "../api/generated/pooler.ts";
import type { ScheduledBackup } from "../api/generated/scheduledbackup.ts";
import type { BuildContext } from "../build/context.ts";
import {
  backupWarnings,
  scheduledBackupWarnings,
  validateBackup,
  validateScheduledBackup,
} from "../schema/admission/backup.ts";
import { validateClusterCreate, validateClusterUpdate } from "../schema/admission/cluster.ts";
import { databaseWarnings, validateDatabase } from "../schema/admission/database.ts";
import { applyDefaults } from "../schema/admission/defaults.ts";
import { type FieldIssue, fieldCause, formatRefusal } from "../schema/admission/field-issue.ts";
import { poolerWarnings, validatePooler } from "../schema/admission/pooler.ts";
import type { AdmissionSettings } from "../schema/admission/settings.ts";
import { clusterUpdateWarnings, clusterWarnings } from "../schema/admission/warnings.ts";
import { admissionContextOf } from "./admission-guard.ts";
import type { AdmissionHandler, AdmissionHandlers, ReviewedObject, ReviewOutcome } from "./admission-review.ts";

const prefix = "postgresql-cnpg-io-v1";

/** Kinds whose defaults are all in their schemas: their mutating webhooks exist because configurations of others name them. */
const schemaDefaulted = ["backup", "database", "scheduledbackup"] as const;
const unchanged: AdmissionHandler = () => ({ kind: "allowed" });

/** The webhooks that this operator serves, by path (reference: cluster controller §9.3). */
export function createAdmissionHandlers(
  context: BuildContext,
  options: { volumeSnapshots: boolean },
): AdmissionHandlers {
  const admission = admissionContextOf(context);
  const { settings } = admission;
  return new Map<string, AdmissionHandler>([
    [`/mutate-${prefix}-cluster`, ({ object }) => withDefaults(object as Cluster, settings)],
    ...schemaDefaulted.map((kind): [string, AdmissionHandler] => [`/mutate-${prefix}-${kind}`, unchanged]),
    [
      `/validate-${prefix}-cluster`,
      (review) => {
        const cluster = review.object as Cluster;
        const previous = previousOf<Cluster>(review);
        if (!previous)
          return verdict(review, "Cluster", validateClusterCreate(cluster, admission), clusterWarnings(cluster));
        const issues = validateClusterUpdate(cluster, previous, admission);
        return verdict(review, "Cluster", issues, clusterUpdateWarnings(cluster, previous));
      },
    ],
    [`/validate-${prefix}-backup`, validator<Backup>("Backup", (it) => validateBackup(it, options), backupWarnings)],
    [
      `/validate-${prefix}-scheduledbackup`,
      validator<ScheduledBackup>(
        "ScheduledBackup",
        (it) => validateScheduledBackup(it, options),
        scheduledBackupWarnings,
      ),
    ],
    [`/validate-${prefix}-database`, validator<Database>("Database", validateDatabase, databaseWarnings)],
    [`/validate-${prefix}-pooler`, validator<Pooler>("Pooler", validatePooler, poolerWarnings)],
  ]);
}

/** What does not have the shape of a Cluster is left as it is: its schema, which is asked next, says what is wrong with it. */
function withDefaults(cluster: Cluster, settings: AdmissionSettings): ReviewOutcome {
  try {
    return { kind: "changed", object: applyDefaults(cluster, { mode: "preserve", settings }) };
  } catch (error) {
    if (error instanceof TypeError) return { kind: "allowed" };
    throw error;
  }
}

function validator<T>(
  kind: string,
  validate: (object: T) => FieldIssue[],
  warningsOf: (object: T) => string[],
): AdmissionHandler {
  return (review) => verdict(review, kind, validate(review.object as T), warningsOf(review.object as T));
}

function verdict(
  review: ReviewedObject,
  kind: string,
  issues: readonly FieldIssue[],
  warnings: readonly string[],
): ReviewOutcome {
  if (issues.length === 0) return { kind: "allowed", warnings };
  // The group differs between the two operations, as clients of the original know it.
  const group = previousOf(review) ? `${kind.toLowerCase()}.cnpg.io` : "postgresql.cnpg.io";
  const name = (review.object as { metadata?: { name?: string } }).metadata?.name ?? "";
  const message = formatRefusal(`${kind}.${group}`, name, issues);
  const details = { name, group, kind, causes: issues.map(fieldCause) };
  return { kind: "denied", message, code: 422, reason: "Invalid", details, warnings };
}

function previousOf<T>(review: ReviewedObject): T | undefined {
  return review.operation === "UPDATE" && review.oldObject ? (review.oldObject as T) : undefined;
}
