/** How a process ended. */
export interface PostmasterExit {
  pid: number;
  /** Exit code; `null` when a signal ended it or when it is not known. */
  code: number | null;
  /** Signal number, 0 when it ended by itself. */
  signal: number;
}

/** What the parent of the postmaster knows when the runtime comes up. */
export interface HostState {
  /** The postmaster that runs already; `undefined` when none does. */
  postmasterPid: number | undefined;
  /** Termination signal that came while no runtime was up. */
  pendingSignal: "TERM" | "INT" | undefined;
  /** Milliseconds until the deadline that stands; absent when none does. */
  deadlineMs?: number;
  /** Why every process of the pod was killed since PostgreSQL was started last; whatever of it is left has its end pending. */
  killed?: "deadline" | "disk";
  /** What the runtime before had kept; absent when that was nothing. */
  note?: string;
}

/** What was logged while no runtime read the log pipes. */
export interface LogSpill {
  /** File with the lines kept; `undefined` when there are none. */
  path: string | undefined;
  droppedLines: number;
}

export interface PostmasterCommand {
  cwd: string;
  argv: readonly string[];
  env: Readonly<Record<string, string>>;
}

/** The parent of the postmaster and owner of the container's life: the launcher, or its stand-in for tests. */
export interface PostmasterHost {
  hello(): Promise<HostState>;
  /** Takes over the read side of the log pipes. */
  takeLogs(): Promise<LogSpill>;
  /** Starts the postmaster and gives its pid; refused while one runs. */
  spawn(command: PostmasterCommand): Promise<number>;
  /** Calls back when the postmaster ends; returns the way to stop. Exits that came before are told to the first subscriber. */
  onPostmasterExit(handler: (exit: PostmasterExit) => void): () => void;
  /** Kills every process of the pod at that time from now unless it is moved; 0 takes it away. */
  setDeadline(ms: number): void;
  /**
   * Writes and syncs a file in each of the folders all the time, in processes of their own, and kills every process of the
   * pod when none comes back for that long, in milliseconds; 0 ends it. A later call replaces an earlier one. Resolves once every
   * folder has taken a write since the call, and rejects when that will not be told any more.
   */
  probeVolumes(folders: readonly string[], limitMs: number): Promise<void>;
  /** Keeps a text for the next runtime, in place of an earlier one; resolves once it is kept. */
  keep(note: string): Promise<void>;
  /**
   * Puts the launcher and the runtime of a folder in place of this one's, with everything that must live on. It ends this
   * process; only a refusal comes back, after which nothing has changed.
   */
  upgrade(staged: string): Promise<never>;
  /** Ends the container with this code; the promise never resolves in a real pod. */
  exit(code: number): Promise<void>;
  /** Resolves when the host is gone, which leaves nothing to do but to end. */
  readonly lost: Promise<void>;
}
