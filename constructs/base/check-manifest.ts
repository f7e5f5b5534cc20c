import type { Backup } from "../../src/api/generated/backup.ts";
import type { Cluster } from "../../src/api/generated/cluster.ts";
import type { Database } from "../../src/api/generated/database.ts";
import type { ObjectStore } from "../../src/api/generated/objectstore.ts";
import type { Pooler } from "../../src/api/generated/pooler.ts";
import type { ScheduledBackup } from "../../src/api/generated/scheduledbackup.ts";
import {
  type AdmissionSettings,
  applyDefaults,
  clusterWarnings,
  type FieldIssue,
  formatFieldIssue,
  scheduledBackupWarnings,
  validateBackup,
  validateClusterCreate,
  validateDatabase,
  validateMadeBackups,
  validateObjectStore,
  validatePooler,
  validateScheduledBackup,
} from "../../src/schema/admission/index.ts";
import { evaluateCelRules, isCrdKind, validateAgainstSchema } from "../../src/schema/crd/index.ts";

interface Manifest {
  readonly kind: string;
  readonly metadata?: { readonly name?: string; readonly namespace?: string };
}

/** The settings of an operator that nobody configured; no rule below depends on which image is the default. */
const settings: AdmissionSettings = {
  defaultPostgresImage: "localhost/postgresql:18",
  monitoringQueriesConfigMap: "",
  monitoringQueriesSecret: "",
  includePlugins: [],
};

/**
 * Checks one synthesized object by the rules of the API server (schema, then CEL) and then by those of the webhooks.
 * Each answer names the object, the field and the rule; an empty list means that nothing is wrong.
 */
export function checkManifest(manifest: Manifest): string[] {
  if (!isCrdKind(manifest.kind)) return [];
  const { kind } = manifest;
  const object = `${kind} "${manifest.metadata?.name ?? ""}"`;
  const shape = validateAgainstSchema(kind, manifest);
  // CEL rules are written for objects of the right shape, so they only run on such.
  if (shape.length === 0) shape.push(...evaluateCelRules(kind, manifest));
  if (shape.length > 0) return shape.map((issue) => `${object}: ${issue.path}: ${issue.message}`);
  return admissionIssues(manifest).map((issue) => `${object}: ${formatFieldIssue(issue)}`);
}

/** What the webhooks would take and yet say a word about, each naming the object. */
export function warnOfManifest(manifest: Manifest): string[] {
  const object = `${manifest.kind} "${manifest.metadata?.name ?? ""}"`;
  return warningsOf(manifest).map((warning) => `${object}: ${warning}`);
}

function warningsOf(manifest: Manifest): string[] {
  if (manifest.kind === "Cluster") return clusterWarnings(manifest as Cluster);
  return manifest.kind === "ScheduledBackup" ? scheduledBackupWarnings(manifest as ScheduledBackup) : [];
}

/** The webhooks' rules see an object after its defaults, as the API server hands it to them. */
function admissionIssues(manifest: Manifest): FieldIssue[] {
  switch (manifest.kind) {
    case "Cluster": {
      const cluster = applyDefaults(manifest as Cluster, { mode: "preserve", settings });
      return validateClusterCreate(cluster, { settings, mayExist: true });
    }
    case "Backup":
      return validateBackup(manifest as Backup, { volumeSnapshots: true });
    case "ScheduledBackup":
      return [
        ...validateScheduledBackup(manifest as ScheduledBackup, { volumeSnapshots: true }),
        ...validateMadeBackups(manifest as ScheduledBackup),
      ];
    case "Database":
      return validateDatabase(manifest as Database);
    case "ObjectStore":
      return validateObjectStore(manifest as ObjectStore);
    case "Pooler":
      return validatePooler(manifest as Pooler);
    default:
      return [];
  }
}
