// npm run check:reference [-- --write-digests]
// Compares with data that is not part of the project: the folder is named by CNPG_TS_REFERENCE and holds `crds/`, `samples/` and,
// where CloudNativePG itself was watched, `observed/`. The digests of its definitions are committed, so that unit tests can compare where it is not at hand.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkSamples } from "./acceptance.ts";
import { compareObserved, readObserved } from "./observed.ts";
import { type Comparison, compareDefinitions } from "./structure.ts";
import { planTakeOver } from "./take-over.ts";

const digestsFile = "constructs/crds/digests.json";

async function main(args: readonly string[]): Promise<number> {
  const folder = process.env["CNPG_TS_REFERENCE"];
  if (!folder || !existsSync(join(folder, "crds"))) {
    process.stderr.write(
      `CNPG_TS_REFERENCE ${folder ? `names ${folder}, which has no folder "crds"` : "is not set"}: it has to name the folder with the reference data.\n`,
    );
    return 2;
  }
  const comparisons = compareDefinitions(folder);
  if (args.includes("--write-digests")) writeDigests(comparisons);
  const failures = reportDefinitions(comparisons) + reportObserved(folder) + (await reportSamples(folder));
  process.stdout.write(failures === 0 ? "Equal to the reference.\n" : `${failures} differences.\n`);
  return failures === 0 ? 0 : 1;
}

function reportDefinitions(comparisons: readonly Comparison[]): number {
  const committed = JSON.parse(readFileSync(digestsFile, "utf8")) as Record<string, string>;
  const different = comparisons.filter(({ differences }) => differences.length > 0);
  const outdated = comparisons.filter(({ name, digest }) => committed[name] !== digest);
  for (const { name, differences } of different) {
    process.stdout.write(`${name}: ${differences.length} differences, first ${differences[0]}\n`);
  }
  for (const { name } of outdated) {
    process.stdout.write(`${name}: the committed digest is not the reference's; run with --write-digests.\n`);
  }
  process.stdout.write(`${comparisons.length - different.length} of ${comparisons.length} definitions equal.\n`);
  return different.length + outdated.length;
}

async function reportSamples(folder: string): Promise<number> {
  const { accepted, refused, foreign, mismatches } = await checkSamples(folder);
  for (const { id, problem } of refused) process.stdout.write(`${id}: refused with either definitions: ${problem}\n`);
  for (const { id, problem } of mismatches) process.stdout.write(`${id}: ${problem}\n`);
  process.stdout.write(
    `${accepted} manifests accepted, ${refused.length} refused, ${foreign} of kinds not served here, ${mismatches.length} taken differently.\n`,
  );
  return mismatches.length;
}

/** What we make for clusters that the original made, and what we would do to them. */
function reportObserved(folder: string): number {
  const observed = readObserved(folder);
  if (!observed) return 0;
  const comparisons = compareObserved(observed);
  const different = comparisons.filter(({ differences }) => differences.length > 0);
  for (const { name, differences } of different) process.stdout.write(`${name}:\n  ${differences.join("\n  ")}\n`);
  const steps = observed.clusters.flatMap((cluster) =>
    planTakeOver(folder, cluster, observed).map(
      (step) => `Cluster ${cluster.metadata.name}: taking it over means ${step}`,
    ),
  );
  for (const step of steps) process.stdout.write(`${step}\n`);
  const equal = comparisons.length - different.length;
  process.stdout.write(
    `${equal} of ${comparisons.length} observed objects as we make them; ${steps.length} steps to take ${observed.clusters.length} clusters over.\n`,
  );
  return different.length + steps.length;
}

function writeDigests(comparisons: readonly Comparison[]): void {
  const digests = Object.fromEntries(comparisons.map(({ name, digest }) => [name, digest]));
  writeFileSync(digestsFile, `${JSON.stringify(digests, null, 2)}\n`);
}

process.exitCode = await main(process.argv.slice(2));
