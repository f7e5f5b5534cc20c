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

/** It is not known how a program in a container ended. */
export class ExecError extends Error {
  override readonly name = "ExecError";
  /** False when it is certain that the program was not run. */
  readonly mayHaveRun: boolean;

  constructor(message: string, options: { mayHaveRun: boolean; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.mayHaveRun = options.mayHaveRun;
  }
}

/** Runs programs in containers. */
export interface PodExec {
  /** Rejects with an ExecError when it is not known how the program ended. @default timeoutMs 30000 */
  run(
    target: ContainerRef,
    command: readonly string[],
    options: { signal: AbortSignal; timeoutMs?: number },
  ): Promise<ExecResult>;
}
