/** File operations that state-changing code is written against. */
export interface Files {
  /** Text of a file; `undefined` when it does not exist. */
  read(path: string): Promise<string | undefined>;
  /** Replaces the file by temporary name, fsync and rename; returns false when the content was equal already. */
  writeAtomic(path: string, content: string | Uint8Array, mode?: number): Promise<boolean>;
  exists(path: string): Promise<boolean>;
  remove(path: string, options?: { recursive?: boolean }): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  makeDirectory(path: string, mode?: number): Promise<void>;
  list(path: string): Promise<string[]>;
  chmod(path: string, mode: number): Promise<void>;
  symlink(target: string, path: string): Promise<void>;
  readLink(path: string): Promise<string | undefined>;
}
