import { rm } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import type { Cluster } from "../../api/generated/cluster.ts";
import { resources } from "../../kube/resources.ts";
import { unpackManager } from "../../store/unpack-manager.ts";
import type { InstanceContext } from "../instance-context.ts";
import { type HttpAnswer, type HttpExchange, textAnswer } from "./http-answer.ts";

/** A sender that is silent for this long is given up, in milliseconds; how long it takes in all is its own affair. */
const idleLimitMs = 60_000;
const readLimitMs = 10_000;

export interface ManagerUpgradeDeps {
  context: InstanceContext;
  /** Of this machine, as Go spells it. */
  arch: string;
  /** What must not be cut off just now, in words; `undefined` when nothing. */
  obstacle: () => string | undefined;
  /** Has the launcher start the staged files in place of this process. Only a refusal comes back, and then all goes on as before. */
  handOver: (staged: string) => Promise<void>;
}

/** Not now; asking again later makes sense. */
class NotNowError extends Error {
  override readonly name = "NotNowError";
}

/** `PUT /update`: replaces launcher and runtime while PostgreSQL goes on (reference: instance manager §3.6). */
export class ManagerUpgrade {
  readonly #deps: ManagerUpgradeDeps;
  readonly #staged: string;
  #cleaned: Promise<void> = Promise.resolve();

  constructor(deps: ManagerUpgradeDeps) {
    this.#deps = deps;
    this.#staged = `${deps.context.paths.scratch}/manager.new`;
  }

  /** Removes what an upgrade left: the former files, or half of the new ones. */
  clean(): Promise<void> {
    this.#cleaned = this.#cleaned.catch(() => undefined).then(() => rm(this.#staged, { recursive: true, force: true }));
    return this.#cleaned;
  }

  /** There is no answer when it works: the connection ends with this process. */
  async answer(request: IncomingMessage, exchange: HttpExchange): Promise<HttpAnswer> {
    const { state, logger } = this.#deps.context;
    if (request.method !== "PUT") return textAnswer(405, "the manager is sent by PUT");
    if (state.upgrading) return textAnswer(418, "the instance manager is being replaced already");
    state.upgrading = true;
    try {
      this.#requireQuiet();
      exchange.proceed();
      await this.#receive(request);
      this.#requireQuiet();
      logger.info("Handing over to the new instance manager");
      await this.#deps.handOver(this.#staged);
      throw new Error("the launcher did not start the new instance manager");
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      const isLater = error instanceof NotNowError;
      if (isLater) logger.info("The instance manager is not replaced now", { reason: message });
      else logger.error("The instance manager could not be replaced", { error });
      return textAnswer(isLater ? 503 : 500, message);
    } finally {
      state.upgrading = false;
      await this.clean().catch((error) => logger.warning("The files of the upgrade could not be removed", { error }));
    }
  }

  #requireQuiet(): void {
    const reason = this.#deps.obstacle();
    if (reason) throw new NotNowError(`not now: ${reason}`);
  }

  async #receive(request: IncomingMessage): Promise<void> {
    const { context, arch } = this.#deps;
    await this.clean();
    request.setTimeout(idleLimitMs, () => request.destroy(new Error(`no data for ${idleLimitMs / 1_000} s`)));
    const { hash, release } = await unpackManager(request, { folder: this.#staged, present: context.paths.scratch });
    request.setTimeout(0);
    if (release.arch !== arch) throw new Error(`the manager is made for ${release.arch}, this machine is ${arch}`);
    const cluster = await this.#readCluster();
    const expected = cluster.status?.availableArchitectures?.find((it) => it.goArch === arch)?.hash;
    if (!expected) throw new Error(`the Cluster's status.availableArchitectures names no manager for ${arch}`);
    if (hash !== expected) {
      throw new Error(`the manager has the hash ${hash}, status.availableArchitectures expects ${expected}`);
    }
    const { currentPrimary, targetPrimary } = cluster.status ?? {};
    if (currentPrimary !== targetPrimary) throw new NotNowError("not now: the primary is changing");
  }

  /** Live: whoever could write an old one into our memory must not have a program run by it. */
  async #readCluster(): Promise<Cluster> {
    const { kube, settings } = this.#deps.context;
    const key = { namespace: settings.namespace, name: settings.clusterName };
    try {
      return await kube.get(resources.clusters, key, { timeoutMs: readLimitMs });
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      throw new NotNowError(`not now: the Cluster cannot be read: ${message}`);
    }
  }
}
