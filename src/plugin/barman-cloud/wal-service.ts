// WAL in and out of the archive. Archivers and restorers live as long as their store's configuration and credentials do, so
// that they can work ahead of PostgreSQL's requests.

import type { Cluster } from "../../api/generated/cluster.ts";
import { annotations } from "../../api/labels.ts";
import { readWalRange } from "../../archive/archive-reader.ts";
import { checkEmptyArchive } from "../../archive/empty-archive.ts";
import { warnOfArguments } from "../../archive/passed-over.ts";
import { WalArchiver } from "../../archive/wal-archiver.ts";
import { WalRestorer } from "../../archive/wal-restorer.ts";
import { buildWalArchiveOptions, buildWalConfiguration } from "../../barman/store-configuration.ts";
import type { BulkFiles } from "../../ports/bulk-files.ts";
import type { Clock, Random } from "../../ports/clock.ts";
import type { Files } from "../../ports/files.ts";
import type { Logger } from "../../ports/logger.ts";
import type { ObjectStore } from "../../ports/object-store.ts";
import { SharedResource } from "../../runtime/shared-resource.ts";
import type { WalService } from "../framework/services.ts";
import { StatusError } from "../framework/status-error.ts";
import { checkOwnStore, checkReplicaArchive, readClusterStores, type StoreReference } from "./cluster-stores.ts";
import { chooseRestoreSource } from "./restore-source.ts";
import type { StoreAccess, StoreFacts } from "./store-access.ts";
import type { WalBound } from "./wal-bound.ts";
import { withFreshCredentials, withWalStatus } from "./wal-failure.ts";

export interface WalDeps {
  access: StoreAccess;
  files: Files;
  bulk: BulkFiles;
  clock: Clock;
  random: Random;
  logger: Logger;
  podName: string;
  /** Folder for records of what is archived and for prefetched files, a subfolder each. */
  spoolFolder: string;
  /** Data folder of PostgreSQL; empty when unknown. */
  pgData: string;
  bound: WalBound;
  /** Called with each Cluster that a request brings. */
  seen?: (cluster: Cluster) => void;
}

/** A WAL service that can be ended. */
export interface RunningWalService {
  service: Required<WalService>;
  /** Lets requests under way end, then stops what works ahead. */
  close(): Promise<void>;
}

interface Opened<T> {
  engine: T;
  store: ObjectStore;
}

/** Creates the WAL service of a pod or job. */
export function createWalService(deps: WalDeps): RunningWalService {
  const archiver = new SharedResource<Opened<WalArchiver>>(closeOpened);
  const restorer = new SharedResource<Opened<WalRestorer>>(closeOpened);
  const service: Required<WalService> = {
    archive: ({ cluster, sourceFileName, checkEmptyWalArchive }) =>
      withWalStatus(async () => {
        deps.seen?.(cluster);
        const mixed = checkReplicaArchive(cluster);
        if (mixed) throw new StatusError("FAILED_PRECONDITION", mixed);
        const facts = await deps.access.describe(requireOwn(cluster));
        const markerPath = deps.pgData === "" ? undefined : `${deps.pgData}/${emptyCheckMarker}`;
        const checkEmpty = checkEmptyWalArchive ?? (await wantsEmptyCheck(cluster, markerPath, deps.files));
        const request = {
          path: sourceFileName,
          checkEmpty,
          lookAhead: cluster.status?.currentPrimary === deps.podName,
          ...(markerPath === undefined ? {} : { markerPath }),
        };
        const open = () => openArchiver(facts, sourceFileName, deps);
        const which = `${facts.fingerprint} ${folderOf(sourceFileName)}`;
        await withFreshCredentials(deps.access, facts, () =>
          archiver.use(which, open, ({ engine }) => engine.archive(request)),
        );
      }),
    restore: ({ cluster, sourceWalName, destinationFileName, mode }) =>
      withWalStatus(async () => {
        deps.seen?.(cluster);
        const source = chooseRestoreSource(cluster, readClusterStores(cluster), deps.podName);
        if (!source) throw new StatusError("FAILED_PRECONDITION", checkOwnStore(cluster) ?? noStore(cluster));
        const facts = await deps.access.describe(source.store);
        const { streamingAvailable } = source;
        const request = { name: sourceWalName, destination: destinationFileName, streamingAvailable, mode };
        const open = () => openRestorer(facts, deps);
        await withFreshCredentials(deps.access, facts, () =>
          restorer.use(facts.fingerprint, open, ({ engine }) => engine.restore(request)),
        );
      }),
    async status(cluster) {
      const facts = await deps.access.describe(requireOwn(cluster));
      return withOpenStore(deps.access, facts, async (store) => {
        const range = await readWalRange(store, facts.keys);
        const bound = await deps.bound.get();
        const additionalInformation = {
          serverName: facts.serverName,
          destination: store.location,
          ...(bound === undefined ? {} : { firstRequiredWal: bound }),
        };
        return { firstWal: range?.first ?? "", lastWal: range?.last ?? "", additionalInformation };
      });
    },
    async setFirstRequired({ firstRequiredWal }) {
      await deps.bound.set(firstRequiredWal);
      deps.logger.info("First required WAL file announced", { firstRequiredWal });
    },
  };
  return {
    service,
    async close() {
      await Promise.all([archiver.close(), restorer.close()]);
    },
  };
}

const emptyCheckMarker = ".check-empty-wal-archive";

/** Whether a first archive must find its archive empty, for a client that does not say it. */
async function wantsEmptyCheck(cluster: Cluster, markerPath: string | undefined, files: Files): Promise<boolean> {
  if (skipsEmptyCheck(cluster) || markerPath === undefined) return false;
  return files.exists(markerPath);
}

/** Whether the user took the responsibility for an archive that is not empty. */
export function skipsEmptyCheck(cluster: Cluster): boolean {
  return cluster.metadata.annotations?.[annotations.skipEmptyWalArchiveCheck] === "enabled";
}

/** Fails unless the archive is empty; for a recovery, before it fetches anything. */
export async function requireEmptyArchive(
  access: StoreAccess,
  facts: StoreFacts,
  deps: Pick<WalDeps, "files" | "bulk">,
) {
  await withOpenStore(access, facts, (store) =>
    checkEmptyArchive(facts.keys, facts.serverName, undefined, { ...deps, store }),
  );
}

/** Runs work with a client that is closed afterwards. */
export async function withOpenStore<T>(
  access: StoreAccess,
  facts: StoreFacts,
  work: (store: ObjectStore) => Promise<T>,
): Promise<T> {
  const store = await access.open(facts, "wal");
  try {
    return await work(store);
  } finally {
    store.close();
  }
}

/** The own archive of a Cluster; fails naming the parameter when there is none. */
export function requireOwn(cluster: Cluster): StoreReference {
  const { own } = readClusterStores(cluster);
  if (own) return own;
  throw new StatusError("FAILED_PRECONDITION", checkOwnStore(cluster) ?? noStore(cluster));
}

function noStore(cluster: Cluster): string {
  return `Cluster ${cluster.metadata.namespace}/${cluster.metadata.name} names no ObjectStore in its plugin parameters`;
}

async function openArchiver(facts: StoreFacts, sourceFileName: string, deps: WalDeps): Promise<Opened<WalArchiver>> {
  const store = await deps.access.open(facts, "wal");
  const { configuration, serverName, connection } = facts;
  warnOfArguments(configuration, deps.logger);
  const { compression, level, maxParallel, tags, historyTags } = buildWalConfiguration(configuration);
  const engine = new WalArchiver(
    {
      path: connection.destination.path,
      serverName,
      destination: `${connection.endpoint ?? ""} ${configuration.destinationPath}`,
      walFolder: folderOf(sourceFileName),
      recordFolder: `${deps.spoolFolder}/archived`,
      compression,
      level,
      maxParallel,
      tags,
      historyTags,
      logOptions: buildWalArchiveOptions(configuration, serverName),
    },
    { ...deps, store },
  );
  return { engine, store };
}

async function openRestorer(facts: StoreFacts, deps: WalDeps): Promise<Opened<WalRestorer>> {
  const store = await deps.access.open(facts, "wal");
  const { maxParallel, partials } = buildWalConfiguration(facts.configuration);
  const engine = new WalRestorer(
    {
      path: facts.connection.destination.path,
      serverName: facts.serverName,
      spoolFolder: `${deps.spoolFolder}/prefetched`,
      maxParallel,
      partials,
    },
    { ...deps, store },
  );
  return { engine, store };
}

function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

async function closeOpened({ engine, store }: Opened<{ close(): Promise<void> }>): Promise<void> {
  await engine.close();
  store.close();
}
