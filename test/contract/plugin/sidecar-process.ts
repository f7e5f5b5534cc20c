import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundleProgram, pluginProgram } from "../../../images/bundle.ts";
import { waitFor } from "../../../local/process/wait.ts";
import { runHealthcheck } from "../../../src/plugin/barman-cloud/healthcheck.ts";
import type { Plugin } from "../../../src/ports/plugin.ts";
import { createPluginPool } from "../../../src/rpc/pool.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { barmanPlugin } from "../../support/barman-cloud-objects.ts";
import { captureLogs } from "../../support/log-capture.ts";

/** The plugin as it is shipped: one bundle, run by node. */
export interface PluginProgram {
  file: string;
  remove(): void;
}

export interface SidecarProcess {
  pid: number;
  plugin: Plugin;
  /** Everything written to standard error so far. */
  log(): string;
  /** Resolves when it has ended by itself, with the signal that ended it. */
  ended: Promise<NodeJS.Signals | null>;
  /** Ends it on the spot, as a lost node does. */
  kill(): Promise<void>;
  /** Ends it as the kubelet does; gives the exit code. */
  stop(): Promise<number | null>;
}

export async function buildPluginProgram(): Promise<PluginProgram> {
  const folder = mkdtempSync(join(tmpdir(), "plugin-program-"));
  const file = join(folder, "barman-cloud.cjs");
  writeFileSync(file, await bundleProgram(pluginProgram));
  return { file, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** Starts a sidecar of its own and connects to it. */
export async function spawnSidecar(
  program: PluginProgram,
  kubeconfig: string,
  environment: Record<string, string>,
  socketFolder: string,
  metricsAddress = "0",
): Promise<SidecarProcess> {
  const flags = [`--kubeconfig=${kubeconfig}`, `--metrics-bind-address=${metricsAddress}`];
  const child = spawn(process.execPath, ["--no-maglev", program.file, "instance", ...flags], {
    stdio: ["ignore", "ignore", "pipe"],
    env: {
      PATH: process.env["PATH"] ?? "",
      NODE_OPTIONS: "--max-semi-space-size=1",
      MALLOC_ARENA_MAX: "2",
      MALLOC_MMAP_THRESHOLD_: "131072",
      MALLOC_TRIM_THRESHOLD_: "131072",
      PLUGIN_SOCKET_DIR: socketFolder,
      ...environment,
    },
  });
  const ended = once(child, "exit").then(([, signal]) => signal as NodeJS.Signals | null);
  const chunks: string[] = [];
  child.stderr?.setEncoding("utf8");
  child.stderr?.on("data", (text: string) => chunks.push(text));
  const log = () => chunks.join("");
  await waitFor("the sidecar serves", async () => (await runHealthcheck(["unix"], socketFolder)).code === 0, {
    timeoutMs: 60_000,
    failure: () => (child.exitCode === null ? undefined : `it ended with ${child.exitCode}: ${log()}`),
  });
  const pool = createPluginPool({ clock: systemClock, random: systemRandom, logger: captureLogs().logger });
  pool.replaceEndpoints("sockets", [{ kind: "socket", name: barmanPlugin, path: join(socketFolder, barmanPlugin) }]);
  const plugin = (await pool.load([barmanPlugin])).get(barmanPlugin);
  if (!plugin) throw new Error("the plugin is not in its own session");
  return {
    pid: child.pid ?? 0,
    plugin,
    log,
    ended,
    async kill() {
      await end(child, "SIGKILL");
      await pool.close({ graceMs: 100 });
    },
    async stop() {
      await pool.close({ graceMs: 100 });
      return end(child, "SIGTERM");
    },
  };
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
  const ended = once(child, "exit") as Promise<[number | null]>;
  child.kill(signal);
  return (await ended)[0];
}
