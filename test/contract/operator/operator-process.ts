import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundleProgram, programs } from "../../../images/bundle.ts";
import { choosePort } from "../../../local/process/free-port.ts";
import type { World } from "./world.ts";

/** The operator as it is shipped: one bundle, run by node. */
export interface OperatorProgram {
  start(options: StartOptions): Promise<OperatorProcess>;
  remove(): void;
}

export interface StartOptions {
  /** Namespace to watch. @default all */
  namespace?: string;
  env?: Record<string, string>;
  /** @default an administrator's */
  kubeconfig?: string;
  /** @default a free one */
  webhookPort?: number;
  /** Flags beside the usual ones. */
  flags?: readonly string[];
}

export interface OperatorProcess {
  pid: number;
  webhookPort: number;
  metricsPort: number;
  /** Resolves with the exit code, or the signal's name. */
  ended: Promise<number | string>;
  /** Everything written to standard error so far. */
  log(): string;
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/** As the image starts it (ADR 0001). */
const shippedNodeArguments = ["--max-semi-space-size=1", "--no-maglev"];

export async function buildOperatorProgram(world: World): Promise<OperatorProgram> {
  const folder = mkdtempSync(join(tmpdir(), "cnpg-ts-operator-"));
  const file = join(folder, "operator.cjs");
  writeFileSync(file, await bundleProgram(programs["operator.cjs"]));
  return {
    async start({ namespace = "", env = {}, kubeconfig = world.controlPlane.kubeconfig, flags = [], ...given }) {
      const [webhookPort, metricsPort] = [given.webhookPort ?? (await choosePort()), await choosePort()];
      const child = spawn(
        process.execPath,
        [
          ...shippedNodeArguments,
          file,
          "controller",
          `--kubeconfig=${kubeconfig}`,
          `--webhook-port=${webhookPort}`,
          `--metrics-bind-address=127.0.0.1:${metricsPort}`,
          "--leader-elect",
          "--log-level=debug",
          ...flags,
        ],
        {
          stdio: ["ignore", "ignore", "pipe"],
          env: { PATH: process.env["PATH"] ?? "", WATCH_NAMESPACE: namespace, ...env },
        },
      );
      return watchChild(child, webhookPort, metricsPort);
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function watchChild(child: ChildProcess, webhookPort: number, metricsPort: number): OperatorProcess {
  const chunks: string[] = [];
  child.stderr?.setEncoding("utf8");
  child.stderr?.on("data", (text: string) => chunks.push(text));
  const ended = new Promise<number | string>((resolve) => {
    child.once("exit", (code, signal) => resolve(code ?? signal ?? ""));
  });
  return {
    pid: child.pid ?? 0,
    webhookPort,
    metricsPort,
    ended,
    log: () => chunks.join(""),
    async stop(signal = "SIGTERM") {
      child.kill(signal);
      await ended;
    },
  };
}
