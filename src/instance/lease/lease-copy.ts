import type { Lease } from "../../api/generated/kubernetes.ts";
import { resources } from "../../kube/resources.ts";
import type { LeaseRecord } from "../../plan/instance/lease.ts";
import { isKubeError } from "../../ports/kube-api.ts";
import { readRecord } from "./lease-object.ts";
import type { PrimaryLeaseOptions } from "./options.ts";

/** A read of the Lease, or of what it rests on, that takes longer is given up and repeated, in milliseconds. */
export const readLimitMs = 1_500;
/** Renew times of writes of unknown outcome that are remembered: a right ends before there can be more. */
const rememberedWrites = 10;

type LeaseCopyOptions = Pick<PrimaryLeaseOptions, "kube" | "clock" | "namespace" | "clusterName">;

/** The Lease as this process last saw it, and what is not known of its own writes. */
export class LeaseCopy {
  readonly #options: LeaseCopyOptions;
  #lease: Lease | undefined;
  #record: LeaseRecord | undefined;
  /** When holder and renew time were first seen as they are now. */
  #seen: { key: string; at: number } | undefined;
  /** Version that a write which would take the Lease goes against, until it is known what became of that write. */
  #claiming: string | undefined;
  #replaced: LeaseRecord | undefined;
  #attempted: string[] = [];

  constructor(options: LeaseCopyOptions) {
    this.#options = options;
  }

  /** As last read or written; `undefined` when it has to be read again. */
  get lease(): Lease | undefined {
    return this.#lease;
  }

  /** The record as it was last read or written. */
  get record(): LeaseRecord | undefined {
    return this.#record;
  }

  /** How long this record has been seen unchanged, in milliseconds; `undefined` before the first look. */
  get unchangedMs(): number | undefined {
    return this.#seen && this.#options.clock.monotonicMs() - this.#seen.at;
  }

  /** Whether a write of the own that would take it is under way, or nobody knows what became of it. */
  get claiming(): boolean {
    return this.#claiming !== undefined;
  }

  /** Renew times of writes whose outcome is not known. */
  get attempted(): readonly string[] {
    return this.#attempted;
  }

  /** The record that the last claim whose outcome is known took the place of. */
  get replaced(): LeaseRecord | undefined {
    return this.#replaced;
  }

  /** Reads it without taking note. */
  peek(signal: AbortSignal): Promise<Lease> {
    const { kube, namespace, clusterName: name } = this.#options;
    return kube.get(resources.leases, { namespace, name }, { timeoutMs: readLimitMs, signal });
  }

  async read(signal: AbortSignal): Promise<Lease> {
    this.#lease = await this.peek(signal);
    // A write against another version than this one can't succeed any more, or has done so and shows here.
    if (this.#lease.metadata.resourceVersion !== this.#claiming) this.#claiming = undefined;
    return this.#lease;
  }

  /** The copy may be outdated; what was seen stays known. */
  forget(): void {
    this.#lease = undefined;
  }

  /** Takes note of a record as it is now. */
  notice(record: LeaseRecord): LeaseRecord {
    this.#record = record;
    const key = JSON.stringify([record.holder, record.renewTime, record.voters?.holderUID ?? ""]);
    if (this.#seen?.key !== key) this.#seen = { key, at: this.#options.clock.monotonicMs() };
    return record;
  }

  /** Writes against the version that was read. When it rejects, nobody knows what becomes of the write, save for a conflict. */
  async write(lease: Lease, signal: AbortSignal): Promise<LeaseRecord> {
    this.#claiming = lease.metadata.resourceVersion ?? "";
    const before = this.#lease && readRecord(this.#lease);
    this.#attempted = [...this.#attempted.slice(-rememberedWrites), lease.spec?.renewTime ?? ""];
    try {
      this.#lease = await this.#options.kube.update(resources.leases, lease, { signal });
    } catch (error) {
      // Whatever else happened, the write may still be on its way.
      if (isKubeError(error, "conflict")) this.#claiming = undefined;
      throw error;
    }
    this.#claiming = undefined;
    this.#attempted = [];
    const written = readRecord(this.#lease);
    if (written.transitions !== before?.transitions) this.#replaced = before;
    return written;
  }
}
