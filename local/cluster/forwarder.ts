import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { enterArguments } from "../process/namespaces.ts";

/** A loopback port of the machine and the server inside that it leads to. */
export interface Forwarding {
  port: number;
  machinePid: number;
  targetHost: string;
  targetPort: number;
  logFile: string;
}

/** Opens the port and leaves it with a process inside the namespaces; it ends with them. */
export async function startForwarding(forwarding: Forwarding): Promise<void> {
  const server = await listen(forwarding.port);
  const log = openSync(forwarding.logFile, "a");
  const child = spawn(
    "nsenter",
    enterArguments(forwarding.machinePid, [
      process.execPath,
      join(import.meta.dirname, "forward.mjs"),
      forwarding.targetHost,
      String(forwarding.targetPort),
    ]),
    { detached: true, stdio: ["ignore", log, log, "ipc"] },
  );
  closeSync(log);
  await new Promise<void>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`the forwarder ended with ${code}, see ${forwarding.logFile}`)));
    child.once("message", () => resolve());
    child.send("listen", server);
  });
  child.removeAllListeners();
  child.disconnect();
  child.unref();
  server.close();
}

function listen(port: number): Promise<Server> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port, host: "127.0.0.1" }, () => resolve(server));
  });
}
