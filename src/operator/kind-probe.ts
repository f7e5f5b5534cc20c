import type { KubeClient } from "../kube/kube-client.ts";
import type { Clock } from "../ports/clock.ts";
import type { KubeObject, ResourceType } from "../ports/kube-api.ts";

/** A definition that is missing is asked for again after this time, in milliseconds. */
const askAgainMs = 5_000;

/** Whether the API server knows a kind, which may be installed while the operator runs; a kind once seen is taken to stay. */
export function createKindProbe(
  api: Pick<KubeClient, "serves">,
  type: ResourceType<KubeObject>,
  clock: Clock,
): (signal: AbortSignal) => Promise<boolean> {
  let isServed = false;
  let askAtMs = Number.NEGATIVE_INFINITY;
  return async (signal) => {
    if (isServed || clock.monotonicMs() < askAtMs) return isServed;
    isServed = await api.serves(type, { signal });
    askAtMs = clock.monotonicMs() + askAgainMs;
    return isServed;
  };
}
