import type { Cluster } from "../../api/generated/cluster.ts";
import { namedPrimary } from "../../api/named-primary.ts";
import { parseTargetPrimary } from "../../api/pg-status.ts";
import { resources } from "../../kube/resources.ts";
import {
  isOwnLease,
  type LeaseRecord,
  mustHandOver,
  mustRelist,
  outdatedWish,
  type Primaries,
  planVoters,
} from "../../plan/instance/lease.ts";
import { readLimitMs } from "./lease-copy.ts";
import type { PrimaryLeaseOptions } from "./options.ts";

type CandidacyOptions = Pick<
  PrimaryLeaseOptions,
  "kube" | "state" | "podName" | "podUid" | "namespace" | "clusterName" | "onCluster"
>;

/** `former`: an earlier pod of the own name, or nobody since an instance of the own name gave it back. */
export type LeaseHolder = "me" | "former" | "other" | "nobody";

/** Who is the primary by a Cluster, and who is to be. */
export function primariesOf(cluster: Cluster | undefined): Primaries {
  const { currentPrimary: current = "", targetPrimary: target = "" } = cluster?.status ?? {};
  return { current, target };
}

/** What the Cluster says about this instance and a record of the Lease: whose it is, who may take it, whom it should list. */
export class Candidacy {
  readonly #options: CandidacyOptions;

  constructor(options: CandidacyOptions) {
    this.#options = options;
  }

  get isClusterOfOne(): boolean {
    return this.#options.state.cluster?.spec.instances === 1;
  }

  isOwn(record: LeaseRecord): boolean {
    const { podName, podUid } = this.#options;
    return isOwnLease({ me: podName, myUid: podUid, record, clusterOfOne: this.isClusterOfOne });
  }

  /** Whom a record names, as seen from this pod. */
  holder(record: LeaseRecord): LeaseHolder {
    const { podName } = this.#options;
    if (this.isOwn(record)) return "me";
    // Who gave it back had it last: nobody was primary after it.
    if (record.holder === "") return record.voters?.releasedBy === podName ? "former" : "nobody";
    return record.holder === podName ? "former" : "other";
  }

  /** Whether a person named this instance for a record that nobody else may decide about. */
  isNamed(record: LeaseRecord, cluster: Cluster | undefined = this.#options.state.cluster): boolean {
    if (!cluster) return false;
    return namedPrimary(cluster, { ...record, voters: record.voters?.voters }) === this.#options.podName;
  }

  /** Whether nothing but the Cluster says who may take the Lease: it has no history, or a person decides. */
  #restsOnCluster(record: LeaseRecord): boolean {
    if (record.transitions === 0) return true;
    const isListed = record.voters?.voters.includes(this.#options.podName) ?? true;
    return !isListed && this.isNamed(record);
  }

  /**
   * Why the Lease may not be claimed by the Cluster as it is now; `undefined` when it may. The copy at hand may be an old one: it
   * is read anew, after the record that the claim is to take the place of.
   */
  async obstacle(record: LeaseRecord, wish: Primaries, signal: AbortSignal): Promise<string | undefined> {
    const { kube, namespace, clusterName, podName, onCluster } = this.#options;
    const key = { namespace, name: clusterName };
    const cluster = await kube.get(resources.clusters, key, { timeoutMs: readLimitMs, signal });
    const live = primariesOf(cluster);
    const outdated = outdatedWish(wish, live);
    if (outdated !== undefined) onCluster?.(cluster);
    if (outdated !== undefined || !this.#restsOnCluster(record) || this.isNamed(record, cluster)) return outdated;
    if (record.transitions === 0 && (live.current === "" || live.current === podName)) return undefined;
    return `only ${live.current} may claim a lease that was made anew`;
  }

  /** Whom the Lease should list; a successor that is named may be too young to be known as active. */
  voters(record: LeaseRecord, successor?: string): string[] {
    const { podName, state } = this.#options;
    const status = state.cluster?.status;
    return planVoters({
      me: podName,
      listed: record.voters?.voters ?? [],
      // Without a Cluster nobody is known to have left.
      instanceNames: status?.instanceNames ?? record.voters?.voters ?? [],
      active: [
        ...(status?.instancesStatus?.["healthy"] ?? []),
        ...(status?.instancesStatus?.["replicating"] ?? []),
        ...(successor ? [successor] : []),
      ],
    });
  }

  /** Why an instance that is not to be primary, and holds nothing, has to take the Lease to give it back with another list. */
  duty(record: LeaseRecord): "handOver" | "relist" | undefined {
    const { podName: me, state } = this.#options;
    const { currentPrimary = "", targetPrimary: target = "" } = state.cluster?.status ?? {};
    const parsed = parseTargetPrimary(target);
    const targetPrimary = parsed.kind === "instance" ? parsed.name : "";
    const view = { me, record, currentPrimary, targetPrimary };
    if (mustHandOver(view)) return "handOver";
    return mustRelist({ ...view, voters: this.voters(record) }) ? "relist" : undefined;
  }
}
