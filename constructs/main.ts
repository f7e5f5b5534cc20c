import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { App } from "cdk8s";
import { archivedCluster } from "../examples/archived-cluster.ts";
import { quickstart } from "../examples/quickstart.ts";
import { BarmanCloudPluginChart, OperatorChart } from "./charts.ts";
import { customResourceDefinitions } from "./crds/index.ts";
import { renderManifests } from "./generate/manifests.ts";

/** Synthesizes the committed manifests; `--check` compares them with what is committed and writes nothing. */
function synthesize(outdir: string): void {
  const app = new App({ outdir });
  new OperatorChart(app, "operator");
  new BarmanCloudPluginChart(app, "barman-cloud-plugin");
  quickstart(app);
  archivedCluster(app);
  app.synth();
  // "npm run generate" writes this file too; cdk8s empties the folder first, so whoever runs it must get it back.
  writeFileSync(join(outdir, "crds.k8s.yaml"), renderManifests(customResourceDefinitions));
}

function check(): number {
  const scratch = mkdtempSync(join(tmpdir(), "cnpg-ts-synth-"));
  try {
    synthesize(scratch);
    const drifted = readdirSync(scratch).filter(
      (file) => readOrEmpty(join("dist", file)) !== readOrEmpty(join(scratch, file)),
    );
    for (const file of drifted) {
      process.stderr.write(`dist/${file} is not what the constructs give: run "npm run synth" and commit it\n`);
    }
    return drifted.length === 0 ? 0 : 1;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

if (process.argv.includes("--check")) process.exitCode = check();
else synthesize(process.env["CDK8S_OUTDIR"] ?? "dist");
