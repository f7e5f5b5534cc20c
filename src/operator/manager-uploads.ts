import { clusterName, secretNames } from "../api/cluster-facts.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import type { Pod, Secret } from "../api/generated/kubernetes.ts";
import { secretText } from "../pki/inspect.ts";
import type { ClusterAction } from "../plan/cluster/actions.ts";
import { upgradeFailure } from "../plan/cluster/manager-upgrade.ts";
import type { ManagerUpload } from "../plan/cluster/observed.ts";
import type { Clock } from "../ports/clock.ts";
import type { EventSink, EventTarget } from "../ports/event-sink.ts";
import type { Store } from "../ports/kube-api.ts";
import type { Logger } from "../ports/logger.ts";
import type { ManagerArchive } from "../store/manager-archive.ts";
import { targetOf } from "./execute.ts";
import type { SendOptions, SendOutcome } from "./send-manager.ts";

/** One instance to be given a manager. */
export interface ManagerDelivery {
  /** Namespace and name. */
  cluster: string;
  /** What the events are about. */
  subject: EventTarget;
  instance: string;
  podUid: string;
  ip: string;
  serverCa: string;
  goArch: string;
  hash: string;
  oldHash: string;
}

/** Where the pod and the authority of its certificate are found. */
export interface DeliveryStores {
  pods: Pick<Store<Pod>, "get">;
  secrets: Pick<Store<Secret>, "get">;
}

export interface ManagerUploadsOptions {
  open(goArch: string): Promise<ManagerArchive>;
  send(options: Pick<SendOptions, "ip" | "serverCa" | "archive" | "signal">): Promise<SendOutcome>;
  /** Has the cluster looked at again. */
  enqueue(cluster: string): void;
  events: EventSink;
  clock: Clock;
  logger: Logger;
}

/** How many instances are sent a manager at the same time; each stream is as fast as the network. */
const lanes = 2;
/** A pod that was not heard of for so long is forgotten, in milliseconds. */
const keepMs = 3_600_000;

/** Sends managers in the background, so that a pass over a cluster never waits for one, and remembers how that went. */
export class ManagerUploads {
  readonly #options: ManagerUploadsOptions;
  readonly #states = new Map<string, ManagerUpload>();
  readonly #stop = new AbortController();
  readonly #queue: ManagerDelivery[] = [];
  readonly #running = new Set<Promise<void>>();

  constructor(options: ManagerUploadsOptions) {
    this.#options = options;
  }

  /** By UID of the pod. */
  get states(): ReadonlyMap<string, ManagerUpload> {
    return this.#states;
  }

  /** Begins to send what a plan asks for, unless the pod has gone meanwhile. */
  begin(stores: DeliveryStores, cluster: Cluster, action: ClusterAction & { kind: "sendManager" }): void {
    const { target, goArch, hash, oldHash } = action;
    const { namespace, name, uid } = target;
    const pod = stores.pods.get({ namespace, name });
    const authority = stores.secrets.get({ namespace, name: secretNames(cluster).serverCa });
    const serverCa = authority && secretText(authority, "ca.crt");
    const ip = pod?.metadata.uid === uid ? pod.status?.podIP : undefined;
    if (!ip || !serverCa) return;
    const key = `${namespace}/${clusterName(cluster)}`;
    const subject = targetOf(cluster);
    this.deliver({ cluster: key, subject, instance: name, podUid: uid, ip, serverCa, goArch, hash, oldHash });
  }

  /** Begins unless that instance is being sent one already. */
  deliver(delivery: ManagerDelivery): void {
    const { podUid, hash, oldHash } = delivery;
    if (this.#states.get(podUid)?.kind === "sending" || this.#stop.signal.aborted) return;
    const attempts = this.#states.get(podUid)?.attempts ?? 0;
    this.#forgetOld();
    this.#states.set(podUid, { kind: "sending", atMs: this.#options.clock.now(), hash, oldHash, attempts });
    this.#queue.push(delivery);
    this.#advance();
  }

  forget(podUid: string): void {
    this.#states.delete(podUid);
  }

  /** Gives up whatever is under way. */
  async close(): Promise<void> {
    this.#stop.abort(new Error("the operator ends"));
    this.#queue.length = 0;
    await Promise.all(this.#running);
  }

  #advance(): void {
    while (this.#running.size < lanes) {
      const delivery = this.#queue.shift();
      if (!delivery) return;
      const work = this.#deliver(delivery).finally(() => {
        this.#running.delete(work);
        this.#advance();
      });
      this.#running.add(work);
    }
  }

  async #deliver(delivery: ManagerDelivery): Promise<void> {
    const { clock, logger, enqueue } = this.#options;
    const { instance, podUid, cluster, hash, oldHash } = delivery;
    const fields = { cluster, instance, hash };
    logger.info("Sending an instance its manager", fields);
    const outcome = await this.#send(delivery);
    if (this.#stop.signal.aborted) return;
    const attempts = outcome.kind === "sent" ? 0 : (this.#states.get(podUid)?.attempts ?? 0) + 1;
    this.#states.set(podUid, { kind: outcome.kind, atMs: clock.now(), hash, oldHash, attempts });
    if (outcome.kind === "refused") logger.info("The instance puts its new manager off", { ...fields, ...outcome });
    if (outcome.kind === "failed") this.#reportFailure(delivery, outcome.reason);
    enqueue(cluster);
  }

  async #send({ goArch, ip, serverCa }: ManagerDelivery): Promise<SendOutcome> {
    const { open, send } = this.#options;
    try {
      return await send({ ip, serverCa, archive: await open(goArch), signal: this.#stop.signal });
    } catch (error) {
      return { kind: "failed", reason: error instanceof Error ? error.message : String(error) };
    }
  }

  #reportFailure({ subject, instance, hash, cluster }: ManagerDelivery, reason: string): void {
    const { events, logger } = this.#options;
    logger.error("An instance could not be given its manager", { cluster, instance, hash, reason });
    const message = upgradeFailure(instance, hash, reason);
    events.record(subject, { type: "Warning", reason: "InstanceManagerUpgradeFailed", message });
  }

  #forgetOld(): void {
    const now = this.#options.clock.now();
    for (const [uid, state] of this.#states) {
      if (state.kind !== "sending" && now - state.atMs > keepMs) this.forget(uid);
    }
  }
}
