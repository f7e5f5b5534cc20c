// npm run generate [-- --check]
// From the definitions in constructs/crds come the CRD manifests, the imports, the API types and the schemas of the
// validators; from proto/ comes the code of the plugin protocol. The core types inside the definitions come first, because
// the definitions import them.
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { generateProto } from "../../proto/generate.ts";
import { readOpenApiDefinitions } from "./core/document.ts";
import { renderCoreTypes } from "./core/render.ts";
import { formatSource } from "./format.ts";
import { type Drift, findDrift, type Outputs, repairDrift } from "./outputs.ts";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

async function main(args: readonly string[]): Promise<number> {
  const unknown = args.filter((argument) => argument !== "--check");
  if (unknown.length > 0) {
    process.stderr.write(`unknown argument: ${unknown.join(" ")}\nusage: npm run generate [-- --check]\n`);
    return 2;
  }
  const checking = args.includes("--check");
  const drift = [...(checking ? await check() : await write()), ...(await generateProto({ check: checking }))];
  for (const { path, problem } of drift) process.stdout.write(`${path}: ${problem}\n`);
  if (!checking) {
    process.stdout.write(drift.length === 0 ? "Nothing to do.\n" : `${drift.length} files brought up to date.\n`);
    return 0;
  }
  if (drift.length === 0) return 0;
  process.stderr.write(`${drift.length} generated files drift: run "npm run generate" and commit the result.\n`);
  return 1;
}

async function check(): Promise<readonly Drift[]> {
  const core = await renderCore();
  const coreDrift = findCoreDrift(core);
  // The other files would be rendered with core types that are known to be wrong.
  return coreDrift.length > 0 ? coreDrift : findDrift(root, await renderAll(core));
}

async function write(): Promise<readonly Drift[]> {
  const core = await renderCore();
  const coreDrift = findCoreDrift(core);
  repairDrift(root, core, coreDrift);
  const outputs = await renderAll(core);
  const drift = findDrift(root, outputs);
  repairDrift(root, outputs, drift);
  return [...coreDrift, ...drift];
}

async function renderCore(): Promise<Outputs> {
  const path = "constructs/crds/core/generated/kubernetes.ts";
  return new Map([[path, await formatSource(root, path, renderCoreTypes(readOpenApiDefinitions()))]]);
}

function findCoreDrift(core: Outputs): readonly Drift[] {
  return findDrift(root, core).filter(({ path }) => core.has(path));
}

async function renderAll(core: Outputs): Promise<Outputs> {
  const { renderDerived } = await import("./derived.ts");
  return new Map([...core, ...(await renderDerived(root, readOpenApiDefinitions()))]);
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
