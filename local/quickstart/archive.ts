import { setTimeout as delay } from "node:timers/promises";
import { backupPhases } from "../../src/api/backup-phases.ts";
import type { Kubectl } from "../cluster/kubectl.ts";
import { type Report, step } from "../terminal/progress.ts";
import { UserError } from "../terminal/user-error.ts";
import { apply, waitRolledOut } from "./deploy.ts";
import type { Manifest } from "./manifests.ts";
import { plugin, quickstart } from "./names.ts";

/** An S3 bucket that pods can reach. */
export interface ArchiveStore {
  /** As pods reach it. */
  endpoint: string;
  accessKey: string;
  secretKey: string;
  destinationPath: string;
}

const backupTimeoutMs = 5 * 60_000;
/** The Secret, the ObjectStore and the first Backup of the quickstart. */
const names = { secret: "quickstart-s3", store: "quickstart", backup: "quickstart-first" } as const;

/** Applies the plugin's objects and waits until its current version serves. */
export async function deployPlugin(kubectl: Kubectl, manifests: readonly Manifest[], report: Report): Promise<void> {
  await step(report, "Installing the barman-cloud plugin", "about 10 s", async () => {
    const definitions = manifests.filter(({ kind }) => kind === "CustomResourceDefinition");
    await apply(kubectl, definitions);
    await apply(
      kubectl,
      manifests.filter((manifest) => !definitions.includes(manifest)),
    );
    await waitRolledOut(kubectl, plugin.namespace, plugin.deployment);
  });
}

/** The quickstart with its archive: the store it writes to, and the plugin that does it. */
export function withArchive(manifests: readonly Manifest[], store: ArchiveStore): Manifest[] {
  const { namespace } = quickstart;
  const secret: Manifest = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { namespace, name: names.secret },
    stringData: { ACCESS_KEY_ID: store.accessKey, ACCESS_SECRET_KEY: store.secretKey },
  };
  const objectStore: Manifest = {
    apiVersion: "barmancloud.cnpg.io/v1",
    kind: "ObjectStore",
    metadata: { namespace, name: names.store },
    spec: {
      configuration: {
        destinationPath: store.destinationPath,
        endpointURL: store.endpoint,
        s3Credentials: {
          accessKeyId: { name: names.secret, key: "ACCESS_KEY_ID" },
          secretAccessKey: { name: names.secret, key: "ACCESS_SECRET_KEY" },
        },
        wal: { compression: "gzip", maxParallel: 4 },
        data: { compression: "gzip" },
      },
    },
  };
  return [secret, objectStore, ...manifests.map((it) => (it.kind === "Cluster" ? withPlugin(it) : it))];
}

function withPlugin(cluster: Manifest): Manifest {
  const plugins = [{ name: plugin.name, isWALArchiver: true, parameters: { barmanObjectName: names.store } }];
  return { ...cluster, spec: { ...(cluster["spec"] as object), plugins } };
}

interface BackupView {
  status?: { phase?: string; error?: string; backupId?: string; stoppedAt?: string };
}

/** Takes the first base backup unless it is there, and waits until it is complete. */
export async function takeFirstBackup(kubectl: Kubectl, report: Report): Promise<BackupView> {
  const { namespace, name } = quickstart;
  const backup: Manifest = {
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Backup",
    metadata: { namespace, name: names.backup },
    spec: { cluster: { name }, method: "plugin", pluginConfiguration: { name: plugin.name } },
  };
  return await step(
    report,
    "Taking a base backup",
    "about half a minute: PostgreSQL takes its time over the checkpoint",
    async () => {
      const query = ["get", "backups.postgresql.cnpg.io", names.backup, "-n", namespace];
      const known = await kubectl.json<BackupView>(query).catch(() => undefined);
      // One that failed is in the way of another try.
      if (known?.status?.phase === backupPhases.failed) {
        await kubectl.run(["delete", "backups.postgresql.cnpg.io", names.backup, "-n", namespace]);
      }
      await apply(kubectl, [backup]);
      const end = Date.now() + backupTimeoutMs;
      for (;;) {
        const view = await kubectl.json<BackupView>(query);
        const { phase, error } = view.status ?? {};
        if (phase === backupPhases.completed) return view;
        if (phase === backupPhases.failed) throw new UserError(`The base backup failed: ${error}`);
        if (Date.now() > end) {
          throw new UserError(`The base backup is not complete after 5 minutes; its phase is ${phase ?? "not set"}.`);
        }
        await delay(500);
      }
    },
  );
}

interface StoreView {
  status?: {
    serverRecoveryWindow?: Record<string, { firstRecoverabilityPoint?: string; lastSuccessfulBackupTime?: string }>;
  };
}

/** What can be restored, in lines for the user. */
export async function renderRecoveryWindow(kubectl: Kubectl, store: ArchiveStore): Promise<string[]> {
  const { namespace, name } = quickstart;
  const view = await kubectl.json<StoreView>(["get", "objectstores.barmancloud.cnpg.io", names.store, "-n", namespace]);
  const window = view.status?.serverRecoveryWindow?.[name];
  return [
    `Archive ${store.destinationPath}${name}: WAL and base backups by ${plugin.name}`,
    `  can be restored to any time since ${window?.firstRecoverabilityPoint ?? "(not known yet)"}`,
  ];
}
