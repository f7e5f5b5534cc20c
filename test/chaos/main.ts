import { faults } from "./faults.ts";
import { keep, readRecords } from "./records.ts";
import { createScene, makeOne } from "./run-fault.ts";

const usage = `usage: npm run chaos [-- OPTIONS] [FAULT ...]

Makes faults on the local Kubernetes under writes, judges each and adds it to docs/chaos. Needs three nodes:
npm start -- --nodes 3 --no-quickstart. Without names, those faults that have the fewest runs come first.

  --runs N     how many runs in all (12)
  --required   with synchronous replication that a commit waits for
  --help       show this text

Faults:
${Object.entries(faults)
  .map(([name, { about }]) => `  ${name.padEnd(24)} ${about}`)
  .join("\n")}
`;

function runsAsked(args: string[]): number {
  const at = args.indexOf("--runs");
  return at < 0 ? 12 : Number(args.splice(at, 2)[1]);
}

/** The fault with the fewest runs on record under this kind of replication; the first of several. */
function nextFault(names: readonly string[], durability: string): string {
  const records = readRecords().filter((record) => record.durability === durability);
  const count = (name: string) => records.filter(({ fault }) => fault === name).length;
  return names.reduce((least, name) => (count(name) < count(least) ? name : least));
}

async function main(): Promise<number> {
  const args = process.argv.slice(2);
  if (args.includes("--help")) {
    process.stdout.write(usage);
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
  const names = asked.length > 0 ? asked : Object.keys(faults);
  const about = new Map(Object.entries(faults).map(([name, fault]) => [name, fault.about]));
  let bad = 0;
  const cluster = await createScene(durability);
  try {
    for (let index = 0; index < runs; index += 1) {
      const name = nextFault(names, durability);
      process.stdout.write(`${index + 1} of ${runs}: ${about.get(name)} ... `);
      const record = await makeOne(cluster, name, durability);
      keep(record, about);
      const { gapSeconds, lost, overlapSeconds, sessionSeconds } = record;
      process.stdout.write(
        `gap ${gapSeconds.toFixed(1)} s, session ${sessionSeconds.toFixed(1)} s, overlap ${overlapSeconds.toFixed(1)} s, ${lost} of ${record.acknowledged} lost\n`,
      );
      if (overlapSeconds > 0 || (durability === "required" && lost > 0)) bad += 1;
    }
  } finally {
    await cluster.remove();
  }
  if (bad > 0) process.stderr.write(`${bad} of ${runs} runs broke a promise: see docs/chaos/runs.jsonl\n`);
  return bad > 0 ? 1 : 0;
}

process.exitCode = await main();
