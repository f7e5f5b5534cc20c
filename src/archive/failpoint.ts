/** Steps of the archive and restore loops at which a test may end the process or fail. */
export type ArchiveStep =
  | "emptyChecked"
  | "compressed"
  | "uploaded"
  | "recorded"
  | "markerRemoved"
  | "answered"
  | "downloaded"
  | "delivered"
  | "prefetched";

/** Called after each step with the WAL file's name; what it throws fails the step's work. */
export type ArchiveFailpoint = (step: ArchiveStep, walName: string) => void | Promise<void>;
