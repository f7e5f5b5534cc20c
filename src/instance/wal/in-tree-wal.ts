// WAL in and out of the archives that the Cluster itself describes. Load this module by a dynamic import: it brings the clients of
// the stores with it.
import { warnOfArguments } from "../../archive/passed-over.ts";
import { WalArchiver } from "../../archive/wal-archiver.ts";
import { WalError } from "../../archive/wal-error.ts";
import { WalRestorer } from "../../archive/wal-restorer.ts";
import { buildWalArchiveOptions, buildWalConfiguration } from "../../barman/store-configuration.ts";
import type { InTreeArchive } from "../../plan/instance/wal-sources.ts";
import type { BulkFiles } from "../../ports/bulk-files.ts";
import type { Clock, Random } from "../../ports/clock.ts";
import type { Files } from "../../ports/files.ts";
import type { Logger } from "../../ports/logger.ts";
import type { ObjectStore } from "../../ports/object-store.ts";
import { SharedResource } from "../../runtime/shared-resource.ts";
import { createBulkFiles } from "../../store/bulk-files.ts";
import { ArchivePlaces, type ArchivePlacesDeps, type PlaceFacts } from "./archive-places.ts";
import type { InTreeWal } from "./wal-sources.ts";

export interface InTreeWalDeps extends ArchivePlacesDeps {
  files: Files;
  random: Random;
  clock: Clock;
  logger: Logger;
  /** `pg_wal`, absolute. */
  walFolder: string;
  /** Folder of the durable records; outside PGDATA. */
  recordFolder: string;
  /** Folder of what is fetched ahead; outside PGDATA. */
  spoolFolder: string;
}

interface Opened<T> {
  engine: T;
  store: ObjectStore;
}

/** Creates the engines; archivers and restorers live as long as their archive's configuration and credentials do. */
export function createInTreeWal(deps: InTreeWalDeps): InTreeWal {
  const places = new ArchivePlaces(deps);
  const bulk = createBulkFiles();
  const archiver = new SharedResource<Opened<WalArchiver>>(closeOpened);
  const restorer = new SharedResource<Opened<WalRestorer>>(closeOpened);

  async function reach<T>(archive: InTreeArchive, work: (facts: PlaceFacts) => Promise<T>): Promise<T> {
    try {
      return await work(await places.describe(archive));
    } catch (error) {
      if (error instanceof WalError && error.kind === "denied") places.forget();
      throw error;
    }
  }

  return {
    places,
    archive: (archive, request) =>
      reach(archive, (facts) =>
        archiver.use(
          facts.fingerprint,
          () => openArchiver(facts, places, { ...deps, bulk }),
          ({ engine }) => engine.archive(request),
        ),
      ),
    restore: (archive, fetch) =>
      reach(archive, (facts) =>
        restorer.use(
          facts.fingerprint,
          () => openRestorer(facts, places, { ...deps, bulk }),
          ({ engine }) => engine.restore(fetch),
        ),
      ),
    async close() {
      await Promise.all([archiver.close(), restorer.close()]);
    },
  };
}

async function openArchiver(
  facts: PlaceFacts,
  places: ArchivePlaces,
  deps: InTreeWalDeps & { bulk: BulkFiles },
): Promise<Opened<WalArchiver>> {
  const { configuration, serverName, connection } = facts;
  const store = await places.open(facts, "wal");
  warnOfArguments(configuration, deps.logger);
  const { compression, level, maxParallel, tags, historyTags } = buildWalConfiguration(configuration);
  const engine = new WalArchiver(
    {
      path: connection.destination.path,
      serverName,
      destination: `${connection.endpoint ?? ""} ${configuration.destinationPath}`,
      walFolder: deps.walFolder,
      recordFolder: deps.recordFolder,
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

async function openRestorer(
  facts: PlaceFacts,
  places: ArchivePlaces,
  deps: InTreeWalDeps & { bulk: BulkFiles },
): Promise<Opened<WalRestorer>> {
  const store = await places.open(facts, "wal");
  const { maxParallel, partials } = buildWalConfiguration(facts.configuration);
  const { path } = facts.connection.destination;
  const options = { path, serverName: facts.serverName, spoolFolder: deps.spoolFolder, maxParallel, partials };
  return { engine: new WalRestorer(options, { ...deps, store }), store };
}

async function closeOpened({ engine, store }: Opened<{ close(): Promise<void> }>): Promise<void> {
  await engine.close();
  store.close();
}
