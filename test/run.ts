import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** What one step contributes to the closing line. */
interface Outcome {
  passed: number;
  failed: number;
}

const node = process.execPath;
const vitest = "node_modules/vitest/vitest.mjs";

function run(command: string, args: readonly string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: "inherit" });
    child.on("error", reject);
    child.on("exit", (code, signal) => resolve(code ?? (signal ? 1 : 0)));
  });
}

/** A step that is one check: it passes when the command ends with 0. */
function check(command: string, ...args: string[]): () => Promise<Outcome> {
  return async () => {
    const ok = (await run(command, args)) === 0;
    return { passed: ok ? 1 : 0, failed: ok ? 0 : 1 };
  };
}

function tsx(script: string, ...args: string[]): () => Promise<Outcome> {
  return check(node, "--import", "tsx", script, ...args);
}

/** Runs test folders and counts tests from vitest's own report; a run without a report or without tests is a failure. */
function tests(folders: readonly string[], workers: number, timeoutSeconds = 60): () => Promise<Outcome> {
  return async () => {
    const present = folders.filter((folder) => existsSync(folder));
    const scratch = mkdtempSync(join(tmpdir(), "cnpg-ts-test-"));
    const report = join(scratch, "report.json");
    const code = await run(node, [
      vitest,
      "run",
      ...present,
      `--maxWorkers=${workers}`,
      `--testTimeout=${timeoutSeconds * 1000}`,
      "--reporter=default",
      "--reporter=json",
      `--outputFile.json=${report}`,
    ]);
    try {
      const counts = JSON.parse(readFileSync(report, "utf8")) as {
        numPassedTests: number;
        numFailedTests: number;
        numTotalTests: number;
      };
      const broken = code !== 0 && counts.numFailedTests === 0 ? 1 : 0;
      const empty = counts.numTotalTests === 0 ? 1 : 0;
      const notRun = counts.numTotalTests - counts.numPassedTests - counts.numFailedTests;
      return { passed: counts.numPassedTests, failed: counts.numFailedTests + notRun + broken + empty };
    } catch {
      return { passed: 0, failed: 1 };
    } finally {
      rmSync(scratch, { recursive: true, force: true });
    }
  };
}

/** The tests that share the one local cluster; those of the cluster itself (`test/e2e/local`) bring their own. */
function clusterTests(): string[] {
  return readdirSync("test/e2e")
    .filter((file) => file.endsWith(".test.ts"))
    .map((file) => `test/e2e/${file}`);
}

/** Brings the local Kubernetes up when it is not running, and takes it down again afterwards in that case. */
async function e2e(): Promise<Outcome> {
  const info = spawnSync(node, ["--import", "tsx", "local/info.ts"], { encoding: "utf8" });
  const known = info.status === 0 ? (JSON.parse(info.stdout) as { running?: boolean; nodes?: number }) : {};
  const running = known.running === true;
  // Nodes are lost and cut off in these tests. A cluster that has more keeps them.
  const nodes = String(Math.max(3, known.nodes ?? 0));
  const started = await run(node, ["--import", "tsx", "local/start.ts", "--no-quickstart", "--nodes", nodes]);
  const outcome = started === 0 ? await tests(clusterTests(), 1, 600)() : { passed: 0, failed: 1 };
  if (!running && (await run(node, ["--import", "tsx", "local/stop.ts"])) !== 0) outcome.failed += 1;
  return outcome;
}

const steps: Record<string, { about: string; run: () => Promise<Outcome> }> = {
  lint: { about: "format, lint rules and import boundaries", run: check("node_modules/.bin/biome", "check", ".") },
  typecheck: { about: "TypeScript", run: check(node, "node_modules/typescript/bin/tsc", "-p", ".") },
  drift: { about: "generated files are current", run: tsx("constructs/generate/main.ts", "--check") },
  synth: { about: "synthesized manifests are current", run: tsx("constructs/main.ts", "--check") },
  unit: {
    about: "unit, golden, property and simulation tests",
    run: tests(["test/unit", "test/golden", "test/property", "test/simulation"], 2),
  },
  launcher: { about: "the launcher in a process namespace of its own", run: tests(["test/contract/launcher"], 1, 120) },
  contract: {
    about: "real API server, real PostgreSQL",
    run: tests(
      readdirSync("test/contract")
        .filter((folder) => folder !== "launcher")
        .map((folder) => `test/contract/${folder}`),
      // Most of their time goes by waiting.
      2,
      240,
    ),
  },
  local: { about: "the local Kubernetes itself", run: tests(["test/e2e/local"], 1, 600) },
  e2e: { about: "whole programs on the local Kubernetes", run: e2e },
};

const order = ["lint", "typecheck", "drift", "synth", "unit", "launcher", "contract", "local", "e2e"];

function usage(): string {
  const lines = order.map((name) => `  ${name.padEnd(10)} ${steps[name]?.about ?? ""}`);
  return `usage: npm test, or node local/node24.mjs test/run.ts STEP ...\n\nSteps (all = each of them, in this order):\n${lines.join("\n")}\n`;
}

async function main(): Promise<number> {
  const asked = process.argv.slice(2);
  if (asked.includes("--help")) {
    process.stdout.write(usage());
    return 0;
  }
  const names = asked.length === 0 || asked.includes("all") ? order : asked;
  const unknown = names.filter((name) => !steps[name]);
  if (unknown.length > 0) {
    process.stderr.write(`unknown step: ${unknown.join(", ")}\n${usage()}`);
    return 2;
  }
  const total: Outcome = { passed: 0, failed: 0 };
  const summary: string[] = [];
  for (const name of names) {
    process.stdout.write(`\n=== ${name}: ${steps[name]?.about}\n`);
    const started = Date.now();
    const outcome = (await steps[name]?.run()) ?? { passed: 0, failed: 1 };
    total.passed += outcome.passed;
    total.failed += outcome.failed;
    const seconds = Math.round((Date.now() - started) / 1000);
    summary.push(`  ${name.padEnd(10)} ${outcome.passed} passed, ${outcome.failed} failed, ${seconds} s`);
  }
  process.stdout.write(`\n${summary.join("\n")}\n\n${total.passed} passed, ${total.failed} failed\n`);
  return total.failed === 0 ? 0 : 1;
}

process.exitCode = await main();
