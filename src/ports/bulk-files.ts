import type { FileState } from "./file-state.ts";

/** Operations on files too large to be held as text, for the archive and restore loops. */
export interface BulkFiles {
  /** `undefined` when it does not exist. */
  stat(path: string): Promise<FileState | undefined>;
  /** Opens a file; fails when it does not exist. */
  open(path: string): Promise<BulkSource>;
  /** Writes a new file from chunks, replacing an old one; the path shows it only when it is complete. Returns its size. */
  write(path: string, chunks: AsyncIterable<Uint8Array>, options?: { sync?: boolean; mode?: number }): Promise<number>;
  /** Moves a file, across file systems too; the destination shows it only when it is complete. */
  move(from: string, to: string): Promise<void>;
}

/** A file that is open for reading. */
export interface BulkSource {
  readonly state: FileState;
  /** Bytes from a position; fewer than asked only at the end. */
  read(position: number, length: number): Promise<Uint8Array>;
  close(): Promise<void>;
}
