import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { localInfo } from "./kubectl.ts";

const run = promisify(execFile);

/** Freezes the API server for a time: connections stay open and nothing answers, the worst way of being away. */
export async function freezeApiServer(ms: number): Promise<void> {
  const { enter } = await localInfo();
  const [command, ...prefix] = enter ?? [];
  if (!command) throw new Error("the local Kubernetes is not running: npm start");
  const signal = (name: string) => run(command, [...prefix, "pkill", `-${name}`, "-x", "kube-apiserver"]);
  await signal("STOP");
  try {
    await new Promise((resolve) => setTimeout(resolve, ms));
  } finally {
    await signal("CONT");
  }
}
