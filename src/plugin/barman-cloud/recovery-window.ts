// The part of an ObjectStore's status that tells what one server can be restored to.
import type { ObjectStore } from "../../api/generated/objectstore.ts";
import { type BackupCatalog, computeRecoveryWindow } from "../../barman/catalog.ts";
import { resources } from "../../kube/resources.ts";
import { isKubeError, type KubeApi, type ObjectKey } from "../../ports/kube-api.ts";
import type { CachedReader } from "./cached-reader.ts";

type Windows = NonNullable<NonNullable<ObjectStore["status"]>["serverRecoveryWindow"]>;
type Window = Windows[string];

/** What happened: a look at the catalog, a backup that failed (milliseconds since the epoch), or nothing is left of an archive. */
export type WindowNews =
  | { kind: "catalog"; catalog: BackupCatalog }
  | { kind: "failed"; atMs: number }
  /** `known` is what the status said when the archive was found empty. */
  | { kind: "gone"; known: Window };

/** The windows after some news of one server; the same object when nothing changes. */
export function updateWindows(windows: Windows, serverName: string, news: WindowNews): Windows {
  const before = windows[serverName] ?? {};
  if (news.kind === "gone") {
    const { [serverName]: _gone, ...others } = windows;
    return serverName in windows && sameWindow(before, news.known) ? others : windows;
  }
  const { lastFailedBackupTime } = before;
  const after: Window =
    news.kind === "failed"
      ? { ...before, lastFailedBackupTime: formatTime(news.atMs) }
      : { ...(lastFailedBackupTime ? { lastFailedBackupTime } : {}), ...fromCatalog(news.catalog) };
  if (sameWindow(before, after)) return windows;
  return { ...windows, [serverName]: after };
}

/** A server that failed to back up so recently may be about to fill its archive again, in milliseconds. */
const recentFailureMs = 7 * 86_400_000;

/** Servers, other than the own one, that may be gone: whether they are, only their archives tell. */
export function possiblyGone(
  windows: Windows,
  ownServer: string,
  nowMs: number,
): [serverName: string, known: Window][] {
  return Object.entries(windows).filter(([serverName, { lastFailedBackupTime }]) => {
    const failedMs = Date.parse(lastFailedBackupTime ?? "");
    return serverName !== "" && serverName !== ownServer && !(nowMs - failedMs < recentFailureMs);
  });
}

const attempts = 8;

/**
 * Writes the news into the ObjectStore's status: read anew each time, written whole on the condition that nobody else wrote
 * meanwhile, because that is what the instances' rights allow.
 */
export async function writeWindow(
  key: ObjectKey,
  serverName: string,
  news: WindowNews,
  deps: { api: KubeApi; reader: CachedReader; signal?: AbortSignal },
): Promise<void> {
  const options = deps.signal ? { signal: deps.signal } : {};
  for (let attempt = 1; ; attempt++) {
    const live = await deps.api.get(resources.objectStores, key, options);
    const windows = live.status?.serverRecoveryWindow ?? {};
    const serverRecoveryWindow = updateWindows(windows, serverName, news);
    if (serverRecoveryWindow === windows) return;
    try {
      const status = { ...live.status, serverRecoveryWindow };
      await deps.api.update(resources.objectStores, { ...live, status }, { ...options, subresource: "status" });
      deps.reader.forget(resources.objectStores, key);
      return;
    } catch (error) {
      if (!isKubeError(error, "conflict") || attempt >= attempts) throw error;
    }
  }
}

function fromCatalog(catalog: BackupCatalog): Window {
  const { firstRecoverabilityPointMs: first, lastSuccessfulBackupMs: last } = computeRecoveryWindow(catalog);
  return {
    ...(first === undefined ? {} : { firstRecoverabilityPoint: formatTime(first) }),
    ...(last === undefined ? {} : { lastSuccessfulBackupTime: formatTime(last) }),
  };
}

function sameWindow(left: Window, right: Window): boolean {
  return (
    left.firstRecoverabilityPoint === right.firstRecoverabilityPoint &&
    left.lastSuccessfulBackupTime === right.lastSuccessfulBackupTime &&
    left.lastFailedBackupTime === right.lastFailedBackupTime
  );
}

/** Kubernetes' times carry seconds. */
function formatTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
