/** Steps of a base backup and of a base restore at which a test may end the process or fail. */
export type BaseStep =
  | "backupStarted"
  | "startedInfoWritten"
  | "tablespaceCopied"
  | "dataCopied"
  | "controlFileCopied"
  | "backupStopped"
  | "archivesClosed"
  | "walArchived"
  | "doneInfoWritten"
  | "backupFound"
  | "tablespaceRestored"
  | "dataRestored"
  | "linksMade"
  | "treeSynced";

/** Called after each step with the backup's ID; what it throws fails the work. */
export type BaseFailpoint = (step: BaseStep, backupId: string) => void | Promise<void>;
