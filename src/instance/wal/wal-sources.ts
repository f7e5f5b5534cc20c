import type { ArchiveRequest } from "../../archive/wal-archiver.ts";
import type { WalFetch } from "../../archive/wal-restorer.ts";
import type { InTreeArchive } from "../../plan/instance/wal-sources.ts";
import type { ArchivePlaces } from "./archive-places.ts";

/** WAL in and out of the archives that the Cluster itself describes; every failure is a `WalError`. */
export interface InTreeWal {
  readonly places: ArchivePlaces;
  archive(archive: InTreeArchive, request: ArchiveRequest): Promise<void>;
  restore(archive: InTreeArchive, fetch: WalFetch): Promise<void>;
  /** Lets requests under way end, then stops what works ahead. */
  close(): Promise<void>;
}
