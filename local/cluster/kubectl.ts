import { type RunResult, run, tryRun } from "../process/run.ts";
import { toolPath } from "../tools/build.ts";

/** Runs kubectl against one cluster. */
export interface Kubectl {
  /** Returns its standard output; rejects when it fails. */
  run(args: readonly string[], input?: string): Promise<string>;
  /** Returns the outcome, whatever it is. */
  try(args: readonly string[], input?: string): Promise<RunResult>;
  /** Runs a query with `-o json`; rejects when it fails. */
  json<T>(args: readonly string[]): Promise<T>;
}

/** A kubectl with fixed arguments, and additions to the environment, that choose the cluster, such as `--kubeconfig=FILE`. */
export function createKubectl(
  clusterArguments: readonly string[],
  command: string = toolPath("kubectl"),
  env: Record<string, string> = {},
): Kubectl {
  const options = (input?: string) => (input === undefined ? { env } : { env, input });
  return {
    run: (args, input) => run(command, [...clusterArguments, ...args], options(input)),
    try: (args, input) => tryRun(command, [...clusterArguments, ...args], options(input)),
    json: async <T>(args: readonly string[]) =>
      JSON.parse(await run(command, [...clusterArguments, ...args, "-o", "json"])) as T,
  };
}
