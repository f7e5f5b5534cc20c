import { type ServerKeys, serverKeys } from "../barman/object-keys.ts";

export interface RestoreOptions {
  /** Path inside the bucket. */
  path: string;
  serverName: string;
  /** Folder for prefetched segments, used by this restorer only and emptied when it starts. */
  spoolFolder: string;
  /** Segments downloaded before recovery asks for them. @default twice the downloads at once, at least 4 */
  prefetch?: number | undefined;
  /** Downloads at once beside the requested one. @default 2 */
  maxParallel?: number | undefined;
  /** Whether a partial segment may stand for one that is not there. @default true */
  partials?: boolean;
  /** Bytes of a segment, when known. @default the size of the first one that is restored */
  segmentBytes?: number | undefined;
}

export interface RestoreSettings {
  keys: ServerKeys;
  spoolFolder: string;
  prefetch: number;
  lanes: number;
  partials: boolean;
  segmentBytes: number | undefined;
}

/** Fills in the defaults. */
export function compileRestoreOptions(options: RestoreOptions): RestoreSettings {
  const lanes = Math.max(2, options.maxParallel ?? 1);
  return {
    keys: serverKeys(options.path, options.serverName),
    spoolFolder: options.spoolFolder,
    prefetch: options.prefetch ?? Math.max(4, 2 * lanes),
    lanes,
    partials: options.partials ?? true,
    segmentBytes: options.segmentBytes,
  };
}
