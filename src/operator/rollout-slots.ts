import type { Cluster } from "../api/generated/cluster.ts";
import type { Pod } from "../api/generated/kubernetes.ts";
import { parseRolloutNote } from "../api/rollout-note.ts";
import type { RolloutSlot } from "../plan/cluster/observed.ts";
import type { Clock } from "../ports/clock.ts";
import { KubeError, type Store } from "../ports/kube-api.ts";

/** How long a claim counts although its pod is still there: the deletion is on its way, in milliseconds. */
const underWayMs = 10_000;

/**
 * The operator's one rollout slot. It is read off the Clusters, where each step is noted, so a restart forgets no pause; a
 * step whose pod is still there did not happen.
 */
export class RolloutSlots {
  readonly #clusters: Pick<Store<Cluster>, "list">;
  readonly #pods: Pick<Store<Pod>, "get">;
  readonly #clock: Clock;
  #claim: RolloutSlot | undefined;

  constructor(options: { clusters: Pick<Store<Cluster>, "list">; pods: Pick<Store<Pod>, "get">; clock: Clock }) {
    this.#clusters = options.clusters;
    this.#pods = options.pods;
    this.#clock = options.clock;
  }

  /** The last step of any cluster. */
  latest(): RolloutSlot | undefined {
    let latest = this.#claimUnderWay();
    for (const cluster of this.#clusters.list()) {
      const note = parseRolloutNote(cluster);
      if (!note || (latest && note.atMs <= latest.atMs)) continue;
      const slot = { ...note, cluster: `${cluster.metadata.namespace ?? ""}/${cluster.metadata.name ?? ""}` };
      if (this.#hasHappened(slot)) latest = slot;
    }
    return latest;
  }

  /** Takes the slot for a step that begins now; refused when another one was taken after the step was planned. */
  take(slot: RolloutSlot, seenAtMs: number | undefined): void {
    const latest = this.latest();
    if (latest?.atMs !== seenAtMs) {
      throw new KubeError(`rollout of ${slot.instance}: ${latest?.instance ?? "nobody"} went first`, {
        kind: "conflict",
        status: 409,
      });
    }
    this.#claim = slot;
  }

  /** The step could not be noted, so it does not happen. */
  giveBack(slot: RolloutSlot): void {
    if (this.#claim === slot) this.#claim = undefined;
  }

  #claimUnderWay(): RolloutSlot | undefined {
    const claim = this.#claim;
    if (!claim) return undefined;
    if (this.#clock.now() - claim.atMs < underWayMs || this.#hasHappened(claim)) return claim;
    this.#claim = undefined;
    return undefined;
  }

  #hasHappened({ cluster, instance, podUid }: RolloutSlot): boolean {
    if (podUid === "") return true;
    const [namespace = ""] = cluster.split("/");
    const pod = this.#pods.get({ namespace, name: instance });
    return pod?.metadata.uid !== podUid || pod.metadata.deletionTimestamp !== undefined;
  }
}
