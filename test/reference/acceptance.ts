import { customResourceDefinitions } from "../../constructs/crds/index.ts";
import { type ControlPlane, startControlPlane } from "../../local/control-plane/control-plane.ts";
import { type Answer, ApiServer, installDefinitions } from "./api-server.ts";
import { checkOffline, type Manifest, readSamples, type Sample } from "./samples.ts";
import { readReferenceDefinitions } from "./structure.ts";

/** A manifest that is not taken as it should be, and how it is taken. */
export interface Mismatch {
  readonly id: string;
  readonly problem: string;
}

/** How the samples fared. */
export interface Acceptance {
  /** Manifests that a real API server takes with the reference's definitions. */
  readonly accepted: number;
  /** Manifests that it refuses with them; ours have to refuse them as well. */
  readonly refused: readonly Mismatch[];
  /** Manifests of kinds that are not served, such as those of cert-manager. */
  readonly foreign: number;
  readonly mismatches: readonly Mismatch[];
}

/** Hands every sample to a real API server, first with the reference's definitions and then with ours, and to our validators. */
export async function checkSamples(folder: string): Promise<Acceptance> {
  const samples = readSamples(folder);
  const controlPlane = await startControlPlane();
  try {
    const reference = await createAll(controlPlane, readReferenceDefinitions(folder), samples);
    const own = await createAll(controlPlane, customResourceDefinitions, samples);
    return compare(samples, reference, own);
  } finally {
    await controlPlane.stop();
  }
}

/** What a dry run of each sample answers; undefined for kinds that are not served. */
async function createAll(
  controlPlane: ControlPlane,
  definitions: readonly object[],
  samples: readonly Sample[],
): Promise<readonly (Answer | undefined)[]> {
  const server = new ApiServer(controlPlane);
  try {
    await installDefinitions(server, definitions);
    const paths = await collectionPaths(server, samples);
    await createNamespaces(server, samples);
    const answers: (Answer | undefined)[] = [];
    for (const { manifest } of samples) {
      const path = paths.get(`${manifest.apiVersion}/${manifest.kind}`)?.(manifest);
      answers.push(
        path === undefined
          ? undefined
          : await server.send("POST", `${path}?dryRun=All&fieldValidation=Strict`, manifest),
      );
    }
    return answers;
  } finally {
    await server.close();
  }
}

type PathOf = (manifest: Manifest) => string;

async function collectionPaths(server: ApiServer, samples: readonly Sample[]): Promise<ReadonlyMap<string, PathOf>> {
  const paths = new Map<string, PathOf>();
  for (const apiVersion of new Set(samples.map(({ manifest }) => manifest.apiVersion))) {
    const base = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    const { body } = await server.send("GET", base);
    for (const resource of (body["resources"] ?? []) as { name: string; kind: string; namespaced: boolean }[]) {
      if (resource.name.includes("/")) continue;
      paths.set(`${apiVersion}/${resource.kind}`, ({ metadata }) =>
        resource.namespaced
          ? `${base}/namespaces/${metadata.namespace ?? "default"}/${resource.name}`
          : `${base}/${resource.name}`,
      );
    }
  }
  return paths;
}

async function createNamespaces(server: ApiServer, samples: readonly Sample[]): Promise<void> {
  const names = new Set(samples.map(({ manifest }) => manifest.metadata.namespace ?? "default"));
  for (const name of names) await server.send("POST", "/api/v1/namespaces", { metadata: { name } });
}

function compare(
  samples: readonly Sample[],
  reference: readonly (Answer | undefined)[],
  own: readonly (Answer | undefined)[],
): Acceptance {
  const mismatches: Mismatch[] = [];
  const refused: Mismatch[] = [];
  let accepted = 0;
  let foreign = 0;
  for (const [index, { id, manifest }] of samples.entries()) {
    const wanted = reference[index];
    if (!wanted) {
      foreign += 1;
      continue;
    }
    const offline = checkOffline(manifest);
    const ours = own[index];
    if (wanted.message === "") accepted += 1;
    else refused.push({ id, problem: wanted.message });
    if (wanted.message !== (ours?.message ?? "not served")) {
      mismatches.push({
        id,
        problem: `the API server says "${ours?.message}", with the reference "${wanted.message}"`,
      });
    }
    if ((wanted.message === "") !== (offline === null)) {
      mismatches.push({ id, problem: `our validators say "${offline ?? "accepted"}"` });
    }
  }
  return { accepted, refused, foreign, mismatches };
}
