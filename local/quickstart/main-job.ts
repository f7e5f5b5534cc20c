import { readFileSync } from "node:fs";
import { join } from "node:path";
import { projectRoot } from "../cluster/folders.ts";
import type { Kubectl } from "../cluster/kubectl.ts";
import type { Report } from "../terminal/progress.ts";
import { type ArchiveStore, deployPlugin, renderRecoveryWindow, takeFirstBackup, withArchive } from "./archive.ts";
import { apply, deployOperator } from "./deploy.ts";
import { type DeployedImage, parseManifests, useImages } from "./manifests.ts";
import { quickstart } from "./names.ts";
import { type ClosingWords, renderNextSteps } from "./next-steps.ts";
import { readReplication, renderStatus } from "./status-table.ts";
import { waitHealthy } from "./wait-healthy.ts";

/** Brings the operator, and with it the quickstart cluster, to life in the Kubernetes that kubectl talks to. */
export async function runMainJob(
  kubectl: Kubectl,
  images: readonly DeployedImage[],
  options: ClosingWords & { quickstart: boolean; archive?: ArchiveStore },
  report: Report,
): Promise<void> {
  await deployOperator(kubectl, read("operator", images), report);
  await deployPlugin(kubectl, read("barman-cloud-plugin", images), report);
  if (!options.quickstart) {
    const how = [...options.access, `${options.kubectl} get clusters --all-namespaces`];
    for (const line of ["", "The operator runs. Talk to it with:", ...how.map((each) => `  ${each}`)]) report(line);
    return;
  }
  const { archive } = options;
  const manifests = read("quickstart", images);
  await apply(kubectl, archive ? withArchive(manifests, archive) : manifests);
  const { cluster, pods } = await waitHealthy(kubectl, quickstart.namespace, quickstart.name, report);
  if (archive) await takeFirstBackup(kubectl, report);
  const replication = await readReplication(kubectl, cluster);
  report("");
  for (const line of renderStatus(cluster, pods, replication)) report(line);
  if (archive) for (const line of await renderRecoveryWindow(kubectl, archive)) report(line);
  report("");
  for (const line of renderNextSteps(cluster, pods, options)) report(line);
}

function read(name: string, images: readonly DeployedImage[]) {
  return useImages(parseManifests(readFileSync(join(projectRoot, "dist", `${name}.k8s.yaml`), "utf8")), images);
}
