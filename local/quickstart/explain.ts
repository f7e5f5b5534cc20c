import type { Kubectl } from "../cluster/kubectl.ts";
import { operator } from "./names.ts";

/** What to show when the operator or a cluster does not get where it should: pods, last events, last log lines. */
export async function explainOperator(kubectl: Kubectl): Promise<string> {
  return [
    await section(kubectl, "Pods", ["get", "pods", "--namespace", operator.namespace, "-o", "wide"]),
    await events(kubectl, operator.namespace),
    await operatorLog(kubectl),
  ].join("\n");
}

/** The same for the cluster in a namespace, with its conditions. */
export async function explainCluster(kubectl: Kubectl, namespace: string, name: string): Promise<string> {
  const template =
    "{.status.phase}: {.status.phaseReason}{'\\n'}{range .status.conditions[*]}{.type}={.status} {.message}{'\\n'}{end}";
  return [
    await section(kubectl, "Status", ["get", "cluster", name, "-n", namespace, "-o", `jsonpath=${template}`]),
    await section(kubectl, "Pods", ["get", "pods", "--namespace", namespace, "-o", "wide"]),
    await events(kubectl, namespace),
    await operatorLog(kubectl),
  ].join("\n");
}

function events(kubectl: Kubectl, namespace: string): Promise<string> {
  return section(kubectl, "Last events", ["get", "events", "-n", namespace, "--sort-by=.lastTimestamp"], 12);
}

function operatorLog(kubectl: Kubectl): Promise<string> {
  const pods = `deployment/${operator.deployment}`;
  return section(kubectl, "Operator log", ["logs", "-n", operator.namespace, pods, "--tail=15"], 15);
}

async function section(kubectl: Kubectl, title: string, args: readonly string[], lines = 20): Promise<string> {
  const { stdout, stderr } = await kubectl.try(args);
  const text = (stdout.trim() || stderr.trim()).split("\n").slice(-lines).join("\n  ");
  return `${title}:\n  ${text}`;
}
