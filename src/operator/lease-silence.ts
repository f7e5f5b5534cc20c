import type { Lease } from "../api/generated/kubernetes.ts";
import { leaseGivenBackBy, silentLeaseMs } from "../plan/cluster/silent-lease.ts";
import type { Clock } from "../ports/clock.ts";
import type { Store } from "../ports/kube-api.ts";
import { ownerKeys } from "./watches.ts";

/** Pause between looks at what is held and silent. */
const lookMs = 500;
/** A held Lease that stays silent brings a pass this often; one that was given back brings one pass, which sees to the rest. */
const repeatMs = 5_000;

interface Known {
  text: string;
  since: number;
  toldAt: number | undefined;
}

export interface LeaseSilenceOptions {
  leases: Store<Lease>;
  /** Must count suspended time too, and know no wall clock. */
  clock: Clock;
  /** Asks for a pass over the cluster. */
  enqueue: (key: string) => void;
}

/**
 * Knows since when each primary Lease has been the same, and asks for a pass when one that is held falls silent, or one that was
 * given back is not taken again.
 */
export class LeaseSilence {
  readonly #options: LeaseSilenceOptions;
  readonly #known = new Map<string, Known>();

  constructor(options: LeaseSilenceOptions) {
    this.#options = options;
  }

  /** How long the record has been as this object shows it, in milliseconds. */
  unchangedMs(lease: Lease): number {
    return this.#options.clock.monotonicMs() - this.#note(lease).since;
  }

  /** Whether its holder, or who gave it back, has not written it for long enough to conclude something. */
  isSilent(lease: Lease): boolean {
    const isAwaited = isHeld(lease) || leaseGivenBackBy(lease) !== undefined;
    return isAwaited && this.unchangedMs(lease) >= silentLeaseMs;
  }

  /** Looks until the signal comes. */
  async run(signal: AbortSignal): Promise<void> {
    const { leases, clock } = this.#options;
    const stop = leases.subscribe((event) => {
      if (event.type === "deleted") this.#known.delete(keyOf(event.object));
      else this.#note(event.object);
    });
    try {
      while (!signal.aborted) {
        for (const lease of leases.list()) this.#look(lease);
        await clock.sleep(lookMs, signal).catch(() => undefined);
      }
    } finally {
      stop();
    }
  }

  #look(lease: Lease): void {
    const [cluster] = ownerKeys(lease);
    if (cluster === undefined || !this.isSilent(lease)) return;
    const known = this.#note(lease);
    const now = this.#options.clock.monotonicMs();
    if (known.toldAt !== undefined && (!isHeld(lease) || now - known.toldAt < repeatMs)) return;
    known.toldAt = now;
    this.#options.enqueue(cluster);
  }

  #note(lease: Lease): Known {
    const { holderIdentity, renewTime, leaseTransitions } = lease.spec ?? {};
    const text = JSON.stringify([lease.metadata.uid, holderIdentity, renewTime, leaseTransitions]);
    const key = keyOf(lease);
    const known = this.#known.get(key);
    if (known?.text === text) return known;
    const fresh = { text, since: this.#options.clock.monotonicMs(), toldAt: undefined };
    this.#known.set(key, fresh);
    return fresh;
  }
}

function isHeld(lease: Lease): boolean {
  return Boolean(lease.spec?.holderIdentity);
}

function keyOf({ metadata }: Lease): string {
  return `${metadata.namespace ?? ""}/${metadata.name ?? ""}`;
}
