import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import { projectRoot } from "../../local/cluster/folders.ts";
import { type ControlPlane, startControlPlane } from "../../local/control-plane/control-plane.ts";
import { choosePort } from "../../local/process/free-port.ts";
import { scriptArguments } from "../../local/process/script.ts";

/** A Kubernetes that a user has already, as `npm start -- --context` finds it, by an API server without nodes. */
export interface UserKubernetes {
  controlPlane: ControlPlane;
  /** Adds a context of that name for the same cluster with the token of a user. */
  addContext(name: string, token: string): void;
  /** Connections to the cluster of the current context so far: it is not the one that is asked for. */
  touched(): number;
  /** The text of the user's kubeconfig. */
  kubeconfig(): string;
  /** Runs the program of `npm start`; resolves with its exit code and all that it printed. */
  start(args: readonly string[]): Promise<{ code: number | null; output: string }>;
  stop(): Promise<void>;
}

interface Kubeconfig {
  clusters: { name: string; cluster: object }[];
  users: { name: string; user: object }[];
  contexts: { name: string; context: { cluster: string; user: string } }[];
  "current-context": string;
}

/** Starts one. Contexts: `mine` is its administrator's, `away` leads to nobody, `production` is the current one. */
export async function startUserKubernetes(): Promise<UserKubernetes> {
  const controlPlane = await startControlPlane();
  const folder = mkdtempSync(join(tmpdir(), "cnpg-ts-user-"));
  const file = join(folder, "kubeconfig");
  let connections = 0;
  const other = createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const { clusters, users } = parse(readFileSync(controlPlane.kubeconfig, "utf8")) as Kubeconfig;
  const [cluster, user] = [clusters[0]?.cluster ?? {}, users[0]?.user ?? {}];
  const address = (port: number) => ({ server: `https://127.0.0.1:${port}` });
  const config: Kubeconfig & { apiVersion: string; kind: string } = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      { name: "mine", cluster },
      { name: "away", cluster: address(await choosePort()) },
      { name: "production", cluster: address((other.address() as AddressInfo).port) },
    ],
    users: [{ name: "administrator", user }],
    contexts: ["mine", "away", "production"].map((name) => ({
      name,
      context: { cluster: name, user: "administrator" },
    })),
    "current-context": "production",
  };
  const write = () => writeFileSync(file, stringify(config), { mode: 0o600 });
  write();
  return {
    controlPlane,
    addContext(name, token) {
      config.users.push({ name, user: { token } });
      config.contexts.push({ name, context: { cluster: "mine", user: name } });
      write();
    },
    touched: () => connections,
    kubeconfig: () => readFileSync(file, "utf8"),
    start: (args) => run(join(projectRoot, "local", "start.ts"), args, { KUBECONFIG: file, KUBECACHEDIR: folder }),
    async stop() {
      other.close();
      await controlPlane.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function run(script: string, args: readonly string[], env: Record<string, string>) {
  const child = spawn(process.execPath, scriptArguments(script, args), {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...env },
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
  return new Promise<{ code: number | null; output: string }>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, output }));
  });
}
