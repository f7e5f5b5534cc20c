/** A container of a pod. */
export interface ContainerRef {
  namespace: string;
  pod: string;
  container: string;
}

/** What a program in a container wrote, and how it ended. */
export interface ExecResult {
  stdout: string;
  stderr: string;
  exitCode: number;
}

/** Runs programs in containers. */
export interface PodExec {
  /** Rejects when it is not known how the program ended. @default timeoutMs 30000 */
  run(
    target: ContainerRef,
    command: readonly string[],
    options: { signal: AbortSignal; timeoutMs?: number },
  ): Promise<ExecResult>;
}
