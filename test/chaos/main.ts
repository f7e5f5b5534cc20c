import type { TestCluster } from "../e2e/support/cluster.ts";
import { kubectl } from "../e2e/support/kubectl.ts";
import type { ChaosRecord } from "./chaos-record.ts";
import type { SceneKind } from "./fault.ts";
import { faults, faultsByKind } from "./faults.ts";
import { chooseNext } from "./next-fault.ts";
import { keep, readRecords, writeReport } from "./records.ts";
import { brokePromise } from "./report.ts";
import { makeOne } from "./run-fault.ts";
import { createScene } from "./scene.ts";

const usage = `usage: npm run chaos [-- OPTIONS] [FAULT ...]

Makes faults on the local Kubernetes under writes, judges each and adds it to docs/chaos. Needs three nodes:
npm start -- --nodes 3 --no-quickstart. Without names, those faults that have the fewest runs come first.

  --runs N     how many runs in all (12)
  --required   with synchronous replication that a commit waits for
  --report     write the report from the runs that are kept, and make none
  --help       show this text
${Object.entries(faultsByKind).map(renderKind).join("")}`;

function renderKind([kind, ofKind]: [string, Readonly<Record<string, { about: string }>>]): string {
  const lines = Object.entries(ofKind).map(([name, { about }]) => `  ${name.padEnd(26)} ${about}\n`);
  return `\n${kind}:\n${lines.join("")}`;
}

function runsAsked(args: string[]): number {
  const at = args.indexOf("--runs");
  return at < 0 ? 12 : Number(args.splice(at, 2)[1]);
}

async function main(): Promise<number> {
  const args = process.argv.slice(2);
  if (args.includes("--help")) {
    process.stdout.write(usage);
    return 0;
  }
  if (args.includes("--report")) {
    writeReport();
    return 0;
  }
  const durability = args.includes("--required") ? "required" : "none";
  const runs = runsAsked(args);
  const asked = args.filter((arg) => arg !== "--required");
  const unknown = asked.filter((name) => !faults[name]);
  if (unknown.length > 0 || !Number.isInteger(runs) || runs < 1) {
    process.stderr.write(unknown.length > 0 ? `unknown fault: ${unknown.join(", ")}\n\n${usage}` : usage);
    return 2;
  }
  const { made, bad } = await makeRuns(asked.length > 0 ? asked : Object.keys(faults), runs, durability);
  if (bad > 0) process.stderr.write(`${bad} of ${made} runs broke a promise: see docs/chaos/runs.jsonl\n`);
  if (made < runs) process.stderr.write(`gave up after ${made} runs: ${attempts} in a row could not be made\n`);
  return bad > 0 || made < runs ? 1 : 0;
}

interface Stage {
  readonly kind: SceneKind;
  readonly cluster: TestCluster;
}

/** How often in a row a run may fail to begin: a busy machine is no finding, one that serves nothing at all is no place for runs. */
const attempts = 3;

/** Makes runs on one cluster as long as it is the right one and comes back; resolves with how many it made and how many broke a promise. */
async function makeRuns(names: readonly string[], runs: number, durability: ChaosRecord["durability"]) {
  let made = 0;
  let bad = 0;
  let failed = 0;
  let stage: Stage | undefined;
  while (made < runs && failed < attempts) {
    const records = readRecords().filter((record) => record.durability === durability);
    const name = chooseNext(names, records, (fault) => kindOf(fault) === stage?.kind);
    process.stdout.write(`${made + 1} of ${runs}: ${faults[name]?.about} ... `);
    try {
      stage = await rebuild(stage, kindOf(name), durability);
      const record = await makeOne(stage.cluster, name, durability);
      keep(record);
      process.stdout.write(`${describe(record)}\n`);
      made += 1;
      failed = 0;
      if (brokePromise(record, faults[name])) bad += 1;
      if (record.broken === undefined) continue;
    } catch (error) {
      failed += 1;
      process.stdout.write("could not be made\n");
      process.stderr.write(`${String(error)}\n`);
    }
    stage = await removeWhole(stage);
  }
  await stage?.cluster.remove();
  return { made, bad };
}

/** The cluster at hand when it is of the right kind, else a new one. */
async function rebuild(
  stage: Stage | undefined,
  kind: SceneKind,
  durability: ChaosRecord["durability"],
): Promise<Stage> {
  if (stage?.kind === kind) return stage;
  await removeWhole(stage);
  return { kind, cluster: await createScene(durability, kind) };
}

const kindOf = (name: string): SceneKind => faults[name]?.scene ?? "plain";

/** Waits until it is gone: its end is not to be part of the next run. */
async function removeWhole(stage: Stage | undefined): Promise<undefined> {
  if (!stage) return;
  const { namespace } = stage.cluster;
  const patience = ["--wait=true", "--timeout=180s", "--ignore-not-found"];
  // One that is stuck for longer is left behind.
  await kubectl(["delete", "namespace", namespace, ...patience]).catch(() => undefined);
}

function describe({ gapSeconds, sessionSeconds, overlapSeconds, acknowledged, lost, broken }: ChaosRecord): string {
  const seconds = (value: number) => `${value.toFixed(1)} s`;
  const times = `gap ${seconds(gapSeconds)}, session ${seconds(sessionSeconds)}, overlap ${seconds(overlapSeconds)}`;
  return `${times}, ${lost ?? "nobody knows how many"} of ${acknowledged} lost${broken === undefined ? "" : `, ${broken}`}`;
}

process.exitCode = await main();
