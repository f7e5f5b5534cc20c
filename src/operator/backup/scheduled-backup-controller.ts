import type { Backup } from "../../api/generated/backup.ts";
import type { ScheduledBackup } from "../../api/generated/scheduledbackup.ts";
import { resources } from "../../kube/resources.ts";
import type { BackupEvent } from "../../plan/backup/plan-backup.ts";
import { isChildOf, planScheduledBackup, type ScheduledBackupStatus } from "../../plan/backup/plan-scheduled-backup.ts";
import type { Clock } from "../../ports/clock.ts";
import type { EventSink } from "../../ports/event-sink.ts";
import { isKubeError, type KubeApi } from "../../ports/kube-api.ts";
import { type ReconcileResult, TerminalError } from "../../runtime/controller.ts";
import type { OperatorStores } from "../stores.ts";

export interface ScheduledBackupReconcilerOptions {
  api: KubeApi;
  stores: OperatorStores;
  events: EventSink;
  clock: Clock;
  validate(scheduled: ScheduledBackup): string | null;
  /** IANA name of the zone in which schedules are meant. */
  timeZone: () => string;
}

/** One pass over one ScheduledBackup (reference: backups §4.10). */
export function createScheduledBackupReconciler(options: ScheduledBackupReconcilerOptions) {
  return async (key: string, signal: AbortSignal): Promise<ReconcileResult> => {
    const [namespace = "", name = ""] = key.split("/");
    const scheduled = options.stores.scheduledBackups.get({ namespace, name });
    if (!scheduled) return {};
    const invalid = options.validate(scheduled);
    const observed = {
      invalid,
      backups: options.stores.backups.list(namespace),
      cluster: options.stores.clusters.get({ namespace, name: scheduled.spec.cluster.name }),
      timeZone: options.timeZone(),
    };
    const decision = planScheduledBackup(scheduled, observed, new Date(options.clock.now()));
    if (decision.kind === "create") {
      // The Backup comes first: its name is that of the time, so a pass that is repeated finds it.
      const isMade = await create(options, scheduled, decision.backup, signal);
      if (isMade) for (const event of decision.events) record(options, scheduled, event);
      await writeStatus(options, scheduled, isMade ? decision.status : decision.refused, signal);
      return { requeueAfterMs: 1_000 };
    }
    if (decision.event) record(options, scheduled, decision.event);
    if (decision.kind === "note") await writeStatus(options, scheduled, decision.status, signal);
    if (invalid !== null) throw new TerminalError(invalid);
    return decision.requeueAfterMs === undefined
      ? {}
      : { requeueAfterMs: Math.min(decision.requeueAfterMs, maxPauseMs) };
  };
}

/** Clocks of machines are set now and then, so no pass sleeps longer, in milliseconds. */
const maxPauseMs = 3_600_000;

/** Makes the Backup, or finds it made before; false when another one has its name. */
async function create(
  options: ScheduledBackupReconcilerOptions,
  scheduled: ScheduledBackup,
  backup: Backup,
  signal: AbortSignal,
): Promise<boolean> {
  const { api, stores } = options;
  const { namespace = "", name = "" } = backup.metadata;
  try {
    stores.backups.observeWrite(await api.create(resources.backups, backup, { signal }));
    record(options, scheduled, { type: "Normal", reason: "BackupCreation", message: `Created backup ${name}` });
    return true;
  } catch (error) {
    if (!isKubeError(error, "alreadyExists")) {
      const reason = error instanceof Error ? error.message : String(error);
      const message = `Backup ${name} could not be created: ${reason}`;
      record(options, scheduled, { type: "Warning", reason: "BackupCreation", message });
      throw error;
    }
    const live = await api.get(resources.backups, { namespace, name }, { signal });
    stores.backups.observeWrite(live);
    if (isChildOf(live, scheduled)) return true;
    const message = `Backup ${name} exists and belongs to somebody else; this time is passed over`;
    record(options, scheduled, { type: "Warning", reason: "BackupAdoptionRefused", message });
    return false;
  }
}

async function writeStatus(
  { api, stores }: ScheduledBackupReconcilerOptions,
  scheduled: ScheduledBackup,
  change: Partial<ScheduledBackupStatus>,
  signal: AbortSignal,
): Promise<void> {
  const before = (scheduled.status ?? {}) as Record<string, unknown>;
  // An error that is not told again is over.
  const wanted: Record<string, unknown> = "error" in change ? change : { ...change, error: undefined };
  const changed = Object.entries(wanted).filter(([field, value]) => before[field] !== value);
  if (changed.length === 0) return;
  const { namespace = "", name = "", resourceVersion } = scheduled.metadata;
  const status = Object.fromEntries(changed.map(([field, value]) => [field, value ?? null]));
  const written = await api.patch(
    resources.scheduledBackups,
    { namespace, name },
    { type: "merge", body: { metadata: { resourceVersion }, status } },
    { subresource: "status", signal },
  );
  stores.scheduledBackups.observeWrite(written);
}

function record({ events }: ScheduledBackupReconcilerOptions, scheduled: ScheduledBackup, event: BackupEvent): void {
  const { namespace = "", name = "", uid = "" } = scheduled.metadata;
  events.record({ apiVersion: "postgresql.cnpg.io/v1", kind: "ScheduledBackup", namespace, name, uid }, event);
}
