import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { KubeConfig } from "@kubernetes/client-node";
import { projectRoot } from "./cluster/folders.ts";
import type { Kubectl } from "./cluster/kubectl.ts";
import { applyArguments, fieldManager, listOf } from "./quickstart/deploy.ts";
import { type Manifest, parseManifests } from "./quickstart/manifests.ts";
import { operator } from "./quickstart/names.ts";
import { UserError } from "./terminal/user-error.ts";

/** Refuses a context that the user's kubeconfig does not have, and names those that it has. */
export function checkContext(name: string, kubeconfig: string | undefined = undefined): void {
  const config = new KubeConfig();
  if (kubeconfig === undefined) config.loadFromDefault();
  else config.loadFromString(kubeconfig);
  // Without any kubeconfig the client makes up this one.
  const known = config
    .getContexts()
    .map((context) => context.name)
    .filter((context) => context !== "loaded-context");
  if (known.includes(name)) return;
  const choice = known.length > 0 ? `It has: ${known.join(", ")}.` : "It has none.";
  throw new UserError(`Your kubeconfig has no context ${name}. ${choice}`);
}

/**
 * Runs work with an environment in which the context is the current one: a kubectl that asks the current cluster for its
 * version first, as some vendors' do, must not turn to another. The user's own files stay as they are, and are still read.
 */
export async function asCurrentContext<T>(
  context: string,
  work: (env: { KUBECONFIG: string }) => Promise<T>,
): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "cnpg-ts-context-"));
  try {
    // Of several files the first one that sets a value counts.
    const first = join(folder, "current-context");
    writeFileSync(first, `${JSON.stringify({ apiVersion: "v1", kind: "Config", "current-context": context })}\n`);
    const own = process.env["KUBECONFIG"] || join(homedir(), ".kube", "config");
    return await work({ KUBECONFIG: `${first}${delimiter}${own}` });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A silent server is given up after this time. */
const requestTimeout = "--request-timeout=20s";

/**
 * Refuses a cluster that can't be reached, whose user may not install the operator, or that has an operator of somebody
 * else's. Nothing is changed there.
 */
export async function checkOwnCluster(
  kubectl: Kubectl,
  context: string,
  namespace: string = operator.namespace,
): Promise<void> {
  const version = await kubectl.try(["version", requestTimeout]);
  if (version.code !== 0) {
    throw new UserError(
      `Context ${context} can't be used: ${lastLine(version.stderr)}\nIts cluster must run and be reachable from here: \`kubectl --context ${context} version\` shows when it is.`,
    );
  }
  // A namespaced object can't be tried before its namespace is there; these are what needs an administrator anyway.
  const manifests = ["operator", "barman-cloud-plugin"].flatMap((name) => readManifests(name)).filter(isClusterScoped);
  const trial = await kubectl.try([...applyArguments, "--dry-run=server", requestTimeout], listOf(manifests));
  if (trial.code !== 0) throw new UserError(describeRefusal(context, trial.stderr));
  const found = await kubectl.json<{ items: Installed[] }>([
    ...["get", "deployments", "--namespace", namespace, "--show-managed-fields", requestTimeout],
    ...["--field-selector", `metadata.name=${operator.deployment}`],
  ]);
  const foreign = found.items.find((it) => !it.metadata.managedFields?.some(({ manager }) => manager === fieldManager));
  if (!foreign) return;
  const images = foreign.spec.template.spec.containers.map(({ image }) => image).join(", ");
  throw new UserError(
    `Context ${context} has an operator already that \`npm start\` did not install: deployment ${namespace}/${operator.deployment} with image ${images}.\nIt would be replaced, for all of its clusters. Use another Kubernetes, or remove that installation first.`,
  );
}

interface Installed {
  metadata: { managedFields?: { manager?: string }[] };
  spec: { template: { spec: { containers: { image: string }[] } } };
}

function readManifests(name: string): Manifest[] {
  return parseManifests(readFileSync(join(projectRoot, "dist", `${name}.k8s.yaml`), "utf8"));
}

function isClusterScoped({ kind, metadata }: Manifest): boolean {
  return metadata.namespace === undefined && kind !== "List";
}

/** What kubectl says about a list of objects, shortened to what the user can act on. */
export function describeRefusal(context: string, stderr: string): string {
  const refusals = [
    ...new Set(stderr.match(/User "[^"]*" cannot [^\n]*|is attempting to grant RBAC permissions/g) ?? []),
  ];
  const [first] = refusals;
  if (first === undefined) return `Context ${context} does not take the operator's objects: ${lastLine(stderr)}`;
  const more = refusals.length > 1 ? ` (and ${refusals.length - 1} more)` : "";
  return `Context ${context} may not install the operator: ${first}${more}.\nThis needs the rights of a cluster administrator: use a context that has them.`;
}

function lastLine(text: string): string {
  return text.trim().split("\n").at(-1) ?? "";
}
