import { parseAllDocuments } from "yaml";

/** A Kubernetes object whose kind we don't know beforehand. */
export interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; annotations?: Record<string, string> };
  [field: string]: unknown;
}

/** Where the images come from in the cluster at hand. */
export interface DeployedImage {
  /** Name in the committed manifests. */
  name: string;
  /** Name under which the cluster gets it. */
  target: string;
  digest: string;
}

/** Annotation on our Deployment's pods: a rebuilt image under the same name must start new pods. */
const imageDigestAnnotation = "cnpg-ts.dev/image-digest";

/** Reads the objects of a manifest file. */
export function parseManifests(text: string): Manifest[] {
  return parseAllDocuments(text)
    .map((document) => document.toJS() as Manifest | null)
    .filter((manifest) => manifest !== null);
}

/** Replaces every mention of our images, and marks Deployments with the digest of the operator's. */
export function useImages(manifests: readonly Manifest[], images: readonly DeployedImage[]): Manifest[] {
  return manifests.map((manifest) => {
    const replaced = replaceText(manifest, new Map(images.map(({ name, target }) => [name, target]))) as Manifest;
    return replaced.kind === "Deployment" ? markPods(replaced, images) : replaced;
  });
}

function replaceText(value: unknown, replacements: ReadonlyMap<string, string>): unknown {
  if (typeof value === "string") return replacements.get(value) ?? value;
  if (Array.isArray(value)) return value.map((item) => replaceText(item, replacements));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, replaceText(item, replacements)]));
}

interface DeploymentSpec {
  template: { metadata?: { annotations?: Record<string, string> }; spec: { containers: { image?: string }[] } };
}

function markPods(deployment: Manifest, images: readonly DeployedImage[]): Manifest {
  const spec = deployment["spec"] as DeploymentSpec;
  const used = spec.template.spec.containers.map(({ image }) => image);
  const digests = images.filter(({ target }) => used.includes(target)).map(({ digest }) => digest);
  if (digests.length === 0) return deployment;
  const annotations = { ...spec.template.metadata?.annotations, [imageDigestAnnotation]: digests.join(",") };
  const metadata = { ...spec.template.metadata, annotations };
  return { ...deployment, spec: { ...spec, template: { ...spec.template, metadata } } };
}
