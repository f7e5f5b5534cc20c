import { setTimeout as delay } from "node:timers/promises";
import { type Report, step } from "../terminal/progress.ts";
import type { Kubectl } from "./kubectl.ts";

const timeoutMs = 60_000;

interface ContainerState {
  running?: { startedAt?: string };
  terminated?: { finishedAt?: string };
}

interface Pod {
  metadata: { namespace: string; name: string; deletionTimestamp?: string };
  status?: { phase?: string; containerStatuses?: { state?: ContainerState }[] };
}

/** Pods whose status still tells of containers that ended with the former run of the cluster. */
export function podsOfBefore(pods: readonly Pod[], startedAt: Date): string[] {
  // The status has whole seconds.
  const since = Math.floor(startedAt.getTime() / 1000) * 1000;
  const isOld = (pod: Pod) =>
    pod.metadata.deletionTimestamp === undefined &&
    pod.status?.phase === "Running" &&
    (pod.status.containerStatuses ?? []).some(({ state }) => isBefore(state, since));
  return pods.filter(isOld).map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
}

/** Whether a container's state is older than that time; a lost container has an end without a time. */
function isBefore(state: ContainerState | undefined, since: number): boolean {
  if (state?.running) return !(Date.parse(state.running.startedAt ?? "") >= since);
  if (state?.terminated) return !(Date.parse(state.terminated.finishedAt ?? "") >= since);
  return false;
}

/**
 * Waits until the kubelet has told the truth about every pod of before a restart; until then they look ready.
 * After a minute it goes on: a pod that can't come back is not a reason to have no cluster.
 */
export async function waitForOldPods(kubectl: Kubectl, startedAt: Date, report: Report): Promise<void> {
  const look = async () =>
    podsOfBefore((await kubectl.json<{ items: Pod[] }>(["get", "pods", "--all-namespaces"])).items, startedAt);
  let old = await look();
  if (old.length === 0) return;
  await step(report, `Waiting for ${old.length} pods of before to run again`, "about 10 s", async () => {
    const end = Date.now() + timeoutMs;
    while (old.length > 0 && Date.now() < end) {
      await delay(500);
      old = await look();
    }
    if (old.length > 0) report(`  still not running: ${old.join(", ")}`);
  });
}
