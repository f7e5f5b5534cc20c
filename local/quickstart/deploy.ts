import { setTimeout as delay } from "node:timers/promises";
import type { Kubectl } from "../cluster/kubectl.ts";
import { type Report, step } from "../terminal/progress.ts";
import { UserError } from "../terminal/user-error.ts";
import { explainOperator } from "./explain.ts";
import type { Manifest } from "./manifests.ts";
import { operator } from "./names.ts";

const rolloutTimeoutMs = 120_000;

interface Deployment {
  metadata: { generation: number };
  spec: { replicas?: number };
  status?: { observedGeneration?: number; updatedReplicas?: number; availableReplicas?: number; replicas?: number };
}

/** Applies the operator's objects and waits until its current version serves. */
export async function deployOperator(kubectl: Kubectl, manifests: readonly Manifest[], report: Report): Promise<void> {
  await step(report, "Applying the operator's definitions", "about 5 s", async () => {
    // A namespaced object can't be created before its namespace, nor one of a new kind before its definition.
    const first = manifests.filter(({ kind }) => kind === "Namespace" || kind === "CustomResourceDefinition");
    const rest = manifests.filter((manifest) => !first.includes(manifest));
    await apply(kubectl, first);
    const definitions = first.filter(({ kind }) => kind === "CustomResourceDefinition");
    const names = definitions.map(({ metadata }) => `crd/${metadata.name}`);
    if (names.length > 0) await kubectl.run(["wait", "--for=condition=Established", "--timeout=60s", ...names]);
    await apply(kubectl, rest);
  });
  await step(report, "Waiting for the operator", "about 10 s", async () => {
    await waitRolledOut(kubectl, operator.namespace, operator.deployment, () => explainOperator(kubectl));
  });
}

/** Waits until every pod of a Deployment is of its newest version and available. */
export async function waitRolledOut(
  kubectl: Kubectl,
  namespace: string,
  name: string,
  explain: () => Promise<string> = async () => `See \`kubectl -n ${namespace} describe deployment ${name}\`.`,
): Promise<void> {
  const end = Date.now() + rolloutTimeoutMs;
  while (!isRolledOut(await kubectl.json<Deployment>(["get", "deployment", name, "--namespace", namespace]))) {
    if (Date.now() > end) throw new UserError(`${name} did not become available.\n${await explain()}`);
    await delay(1_000);
  }
}

/** Server-side apply: also for objects whose text is too long for the annotation of a client-side one. */
export async function apply(kubectl: Kubectl, manifests: readonly Manifest[]): Promise<void> {
  if (manifests.length === 0) return;
  await kubectl.run(applyArguments, listOf(manifests));
}

/** Who the API server remembers as the author of what is applied here. */
export const fieldManager = "cnpg-ts-local";

/** kubectl's arguments that apply the objects on standard input. */
export const applyArguments: readonly string[] =
  `apply --server-side --force-conflicts --field-manager=${fieldManager} -f -`.split(" ");

/** Objects as one text for kubectl. */
export function listOf(manifests: readonly Manifest[]): string {
  return JSON.stringify({ apiVersion: "v1", kind: "List", items: manifests });
}

/** Whether every pod of the Deployment is of its newest version and available. */
export function isRolledOut({ metadata, spec, status }: Deployment): boolean {
  const wanted = spec.replicas ?? 1;
  return (
    status?.observedGeneration === metadata.generation &&
    status.updatedReplicas === wanted &&
    status.availableReplicas === wanted &&
    status.replicas === wanted
  );
}
