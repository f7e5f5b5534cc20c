export interface RunOptions {
  cwd?: string;
  /** The whole environment; the caller's own when absent. */
  env?: Record<string, string>;
  input?: string;
  signal?: AbortSignal;
  timeoutMs?: number;
  umask?: number;
  /** Called for each line when the output is to be streamed instead of collected. */
  onLine?: (pipe: "stdout" | "stderr", line: string) => void;
}

export interface RunResult {
  /** Exit code; `null` when a signal ended it. */
  code: number | null;
  signal: string | null;
  stdout: string;
  stderr: string;
}

/** Runs child programs of limited life; the postmaster is the launcher's child and not started here. */
export interface Processes {
  /** Resolves with the outcome, whatever the exit code; rejects when the program cannot be started. */
  run(command: string, args: readonly string[], options?: RunOptions): Promise<RunResult>;
}
