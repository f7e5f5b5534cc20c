export type TreeKind = "file" | "directory" | "symlink" | "other";

/** What a folder holds under one name. */
export interface TreeEntry {
  name: string;
  kind: TreeKind;
}

/** Facts of one file, folder or link. */
export interface TreeStat {
  kind: TreeKind;
  /** Permission bits. */
  mode: number;
  uid: number;
  gid: number;
  size: number;
  /** Nanoseconds since the epoch. */
  mtimeNs: bigint;
  /** Number of names of a file. */
  links: number;
  /** Tells one file of the machine from all others. */
  identity: string;
}

/** A file that is open for reading; it may change meanwhile. */
export interface TreeSource {
  readonly stat: TreeStat;
  /** Fills the buffer from a position; fewer bytes only where the file ends now. Returns their number. */
  read(buffer: Uint8Array, position: number): Promise<number>;
  close(): Promise<void>;
}

/** A new file that is being written. */
export interface TreeSink {
  write(chunk: Uint8Array): Promise<void>;
  /** Ends the file; syncs it first when asked. */
  close(options?: { sync?: boolean; mtimeNs?: bigint }): Promise<void>;
}

/** Whole folder trees, with what a tar archive knows of their entries. Paths are absolute. */
export interface TreeFiles {
  /** Entries by name, sorted; `undefined` when the folder does not exist (any more). */
  list(path: string): Promise<TreeEntry[] | undefined>;
  /** Of the path itself, or of what a link leads to when asked; `undefined` when there is nothing. */
  stat(path: string, options?: { follow?: boolean }): Promise<TreeStat | undefined>;
  /** The path without links; fails when it does not exist. */
  resolve(path: string): Promise<string>;
  readLink(path: string): Promise<string>;
  /** `undefined` when the file does not exist (any more). */
  open(path: string): Promise<TreeSource | undefined>;
  /** Makes a folder and those above it; sets the mode of one that exists. */
  makeDirectory(path: string, mode: number): Promise<void>;
  /** Makes a new file; fails when there is one. */
  create(path: string, mode: number): Promise<TreeSink>;
  symlink(target: string, path: string): Promise<void>;
  /** Gives an existing file another name. */
  link(existing: string, path: string): Promise<void>;
  /** Removes what is there, folders with all they hold, never what a link leads to. */
  remove(path: string): Promise<void>;
  /** Makes a file or folder survive a crash of the machine. */
  sync(path: string): Promise<void>;
}
