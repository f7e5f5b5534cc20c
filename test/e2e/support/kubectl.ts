import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

interface LocalInfo {
  kubeconfig: string;
  kubectl?: string;
  s3?: {
    endpoint: string;
    endpointInCluster: string;
    accessKey: string;
    secretKey: string;
    destinationPath: string;
  } | null;
  /** Start of a command line that runs the rest beside the control plane. */
  enter?: string[] | null;
}

let info: Promise<LocalInfo> | undefined;

/** Facts about the running local Kubernetes, as `npm run -s local:info` prints them. */
export function localInfo(): Promise<LocalInfo> {
  info ??= run(process.execPath, ["--import", "tsx", "local/info.ts"]).then(({ stdout }) => JSON.parse(stdout));
  return info;
}

/** Runs kubectl against the local Kubernetes and returns what it prints; throws with its error text. */
export async function kubectl(args: readonly string[], input?: string): Promise<string> {
  const { kubeconfig, kubectl: binary } = await localInfo();
  const child = run(binary ?? "kubectl", ["--kubeconfig", kubeconfig, ...args], { maxBuffer: 64 * 1024 * 1024 });
  if (input !== undefined) child.child.stdin?.end(input);
  const { stdout } = await child;
  return stdout;
}

/** Reads one object as JSON; `undefined` when it does not exist. */
export async function getObject<T = Record<string, unknown>>(
  namespace: string,
  kind: string,
  name: string,
): Promise<T | undefined> {
  const text = await kubectl(["get", kind, name, "-n", namespace, "-o", "json", "--ignore-not-found"]);
  return text.trim() === "" ? undefined : (JSON.parse(text) as T);
}

/** Applies objects given as data. */
export async function apply(...objects: readonly object[]): Promise<void> {
  await kubectl(["apply", "-f", "-"], JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }));
}
