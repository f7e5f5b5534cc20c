import { setTimeout as delay } from "node:timers/promises";
import { labels } from "../../src/api/labels.ts";
import { phases } from "../../src/api/phases.ts";
import type { Kubectl } from "../cluster/kubectl.ts";
import type { Report } from "../terminal/progress.ts";
import { UserError } from "../terminal/user-error.ts";
import { explainCluster } from "./explain.ts";

const timeoutMs = 5 * 60_000;

/** The parts of a Cluster that are looked at here. */
export interface ClusterView {
  metadata: { name: string; namespace: string };
  spec: { instances: number };
  status?: {
    phase?: string;
    phaseReason?: string;
    readyInstances?: number;
    currentPrimary?: string;
    timelineID?: number;
  };
}

export interface PodView {
  metadata: { name: string; labels?: Record<string, string> };
  spec: { nodeName?: string };
  status?: { phase?: string; conditions?: { type: string; status: string }[] };
}

/** Whether the cluster itself and each of its pods say that all is well. */
export function isHealthy(cluster: ClusterView, pods: readonly PodView[]): boolean {
  const { instances } = cluster.spec;
  // After a restart of everything the cluster's status may still be that of before.
  const ready = pods.filter(isReady).length;
  return cluster.status?.phase === phases.healthy && cluster.status.readyInstances === instances && ready === instances;
}

export function isReady(pod: PodView): boolean {
  return pod.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") ?? false;
}

/** Where the cluster stands, in one line. */
export function describeProgress(cluster: ClusterView, pods: readonly PodView[]): string {
  const { phase = "not seen by the operator yet", phaseReason } = cluster.status ?? {};
  const reason = phaseReason === undefined || phaseReason === "" ? "" : ` (${phaseReason})`;
  return `${phase}${reason}, ${pods.filter(isReady).length} of ${cluster.spec.instances} instances ready`;
}

/** Waits until the cluster is healthy, saying each change; gives the reasons when it does not become so. */
export async function waitHealthy(
  kubectl: Kubectl,
  namespace: string,
  name: string,
  report: Report,
): Promise<{ cluster: ClusterView; pods: PodView[] }> {
  const start = Date.now();
  report(`→ Waiting for cluster ${name} to be healthy (about 1 minute)`);
  for (let last = ""; ; ) {
    const cluster = await kubectl.json<ClusterView>(["get", "cluster", name, "-n", namespace]);
    const pods = await instancePods(kubectl, namespace, name);
    const seconds = Math.round((Date.now() - start) / 1000);
    if (isHealthy(cluster, pods)) {
      report(`  healthy after ${seconds} s`);
      return { cluster, pods };
    }
    const progress = describeProgress(cluster, pods);
    if (progress !== last) report(`  ${progress}, ${seconds} s`);
    last = progress;
    if (Date.now() - start > timeoutMs) {
      throw new UserError(
        `Cluster ${name} is not healthy after 5 minutes.\n${await explainCluster(kubectl, namespace, name)}`,
      );
    }
    await delay(1_000);
  }
}

async function instancePods(kubectl: Kubectl, namespace: string, name: string): Promise<PodView[]> {
  const selector = `${labels.cluster}=${name},${labels.podRole}=instance`;
  return (await kubectl.json<{ items: PodView[] }>(["get", "pods", "-n", namespace, "-l", selector])).items;
}
