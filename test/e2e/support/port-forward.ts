import { spawn } from "node:child_process";
import { localInfo } from "./kubectl.ts";

/** Makes one port of a pod reachable on the loopback address; `close` ends it. */
export async function forwardPort(
  namespace: string,
  pod: string,
  port: number,
): Promise<{ port: number; close(): void }> {
  const { kubeconfig, kubectl } = await localInfo();
  const args = ["--kubeconfig", kubeconfig, "port-forward", "-n", namespace, `pod/${pod}`, `:${port}`];
  const child = spawn(kubectl ?? "kubectl", args, { stdio: ["ignore", "pipe", "pipe"] });
  const local = await new Promise<number>((resolve, reject) => {
    let output = "";
    const read = (chunk: Buffer) => {
      output += chunk.toString();
      const match = /Forwarding from 127\.0\.0\.1:(\d+)/.exec(output);
      if (match) resolve(Number(match[1]));
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.on("error", reject);
    child.on("exit", () => reject(new Error(`port-forward to ${namespace}/${pod} ended: ${output}`)));
  });
  return { port: local, close: () => void child.kill("SIGTERM") };
}
