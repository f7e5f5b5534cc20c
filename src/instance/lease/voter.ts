import type { LeaseRecord } from "../../plan/instance/lease.ts";
import {
  binds,
  type Grant,
  grantOf,
  type PromiseAnswer,
  type PromiseRequest,
  planPromise,
} from "../../plan/instance/promise.ts";
import { isReleasedBy, type ReleaseNotice } from "../../plan/instance/release-notice.ts";
import type { PrimaryLeaseOptions } from "./options.ts";

type VoterOptions = Pick<PrimaryLeaseOptions, "clock" | "podName"> & {
  /** Namespace and name of the cluster. */
  cluster: string;
};

/** What this instance promised another holder, and what a holder told of its end (safety protocol §1.3). */
export class Voter {
  readonly #options: VoterOptions;
  #grant: Grant | undefined;
  #told: ReleaseNotice | undefined;

  constructor(options: VoterOptions) {
    this.#options = options;
  }

  /** The promise that binds at this moment, by the record as it was last seen. */
  binding(record: LeaseRecord | undefined): Grant | undefined {
    return binds(this.#grant, record, this.#options.clock.monotonicMs(), this.#told) ? this.#grant : undefined;
  }

  /** How long that promise still binds, in milliseconds; 0 = none does. */
  promisedMs(record: LeaseRecord | undefined): number {
    const now = this.#options.clock.monotonicMs();
    return Math.max(0, (this.binding(record)?.until ?? now) - now);
  }

  /** Promises a holder that can't renew to leave the Lease alone, or says why not. */
  promise(
    request: PromiseRequest,
    view: { record: LeaseRecord | undefined; claiming: boolean; isHolder: boolean },
  ): PromiseAnswer {
    const { podName: me, clock, cluster } = this.#options;
    const now = clock.monotonicMs();
    const grant = this.binding(view.record);
    const answer = planPromise({ cluster, me, ...view, grant }, request);
    if (answer.granted) this.#grant = grantOf(grant, request, now);
    return answer;
  }

  /** Takes what a holder tells of itself; false when it is another cluster's. */
  note(notice: ReleaseNotice): boolean {
    if (notice.cluster !== this.#options.cluster) return false;
    this.#told = notice;
    return true;
  }

  /** Whether the holder of this very record told that it is down. */
  isReleased(record: LeaseRecord): boolean {
    return isReleasedBy(this.#told, record);
  }
}
