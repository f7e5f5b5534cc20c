/** What tells one state of a file from another without reading it. */
export interface FileState {
  size: number;
  inode: string;
  /** Nanoseconds since the epoch, decimal. */
  mtimeNs: string;
}
