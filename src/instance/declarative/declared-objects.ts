import { isReplicaCluster } from "../../api/cluster-facts.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import type { KubeClient } from "../../kube/kube-client.ts";
import { patchStatus } from "../../kube/patch-status.ts";
import { resources } from "../../kube/resources.ts";
import { createStore, type RunnableStore } from "../../kube/store.ts";
import { type DeclarativeDecision, type DeclarativeView, planDeclarative } from "../../plan/instance/declarative.ts";
import { isKubeError } from "../../ports/kube-api.ts";
import { withLogFields } from "../../runtime/log-scope.ts";
import type { InstanceContext } from "../instance-context.ts";
import { passFields } from "../pass-fields.ts";
import type { SecretReader } from "../secret-reader.ts";
import type { ApplyDeps, ApplyResult, Declared, DeclaredKind } from "./declared-kind.ts";
import { declaredKinds } from "./object-kinds.ts";
import { errorText } from "./server-message.ts";

/** How long an object rests after it was looked at, unless it or its Cluster changes. */
const restMs = 30_000;
/** How long what was found as it should be rests: it takes sessions to see that. */
const goodRestMs = 60_000;
const lookMs = 1_000;
/** How long after somebody else's write came between, or something stood in the way of a removal, in milliseconds. */
const retryMs = 2_000;

/** Keeps Databases, DatabaseRoles, Publications and Subscriptions on the primary (reference: declarative objects §1). */
export class DeclaredObjects {
  readonly #context: InstanceContext;
  readonly #secrets: SecretReader;
  readonly #kinds: readonly { kind: DeclaredKind; store: RunnableStore<Declared> }[];
  readonly #rests = new Map<string, { seen: string; untilMs: number }>();

  constructor(context: InstanceContext, kube: KubeClient, secrets: SecretReader) {
    this.#context = context;
    this.#secrets = secrets;
    const { namespace } = context.settings;
    this.#kinds = declaredKinds.map((kind) => ({
      kind,
      store: createStore(kube, kind.type, { logger: context.logger, clock: context.clock, namespace }),
    }));
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([...this.#kinds.map(({ store }) => store.run(signal)), this.#loop(signal)]);
  }

  async #loop(signal: AbortSignal): Promise<void> {
    const { clock, state } = this.#context;
    while (!signal.aborted) {
      if (state.cluster && (await this.#acts(state.cluster))) await this.#pass(state.cluster, signal);
      await clock.sleep(lookMs, signal).catch(() => undefined);
    }
  }

  /** Only the settled primary acts, or the designated one of a replica cluster. */
  async #acts({ status }: Cluster): Promise<boolean> {
    const { data, settings, state } = this.#context;
    const settled = status?.currentPrimary === settings.podName && status.targetPrimary === settings.podName;
    if (!settled || state.fenced || state.stopping) return false;
    const role = await data.role().catch(() => undefined);
    return role === "primary" || (role === "standby" && isReplicaCluster(state.cluster as Cluster));
  }

  async #pass(cluster: Cluster, signal: AbortSignal): Promise<void> {
    const { clock, settings } = this.#context;
    for (const { kind, store } of this.#kinds) {
      const known = () =>
        store.list(settings.namespace).filter(({ spec }) => spec.cluster.name === settings.clusterName);
      for (const object of known()) {
        const { uid = "", generation, deletionTimestamp } = object.metadata;
        const seen = JSON.stringify([
          generation,
          deletionTimestamp,
          cluster.metadata.generation,
          kind.renewal?.(object),
        ]);
        const rest = this.#rests.get(uid);
        if (rest?.seen === seen && clock.monotonicMs() < rest.untilMs) continue;
        // Of two for one name that were made at once the second must see that the first has just won.
        const attempt = () => this.#attempt(kind, store, { object, all: known() }, cluster, signal);
        const pauseMs = await withLogFields(this.#logFields(kind, object), attempt);
        if (pauseMs === undefined) return;
        this.#rests.set(uid, { seen, untilMs: clock.monotonicMs() + pauseMs });
      }
    }
  }

  #logFields({ type: { kind } }: DeclaredKind, { metadata }: Declared): Record<string, unknown> {
    const { settings } = this.#context;
    return passFields(kind, { namespace: settings.namespace, name: metadata.name ?? "" }, settings);
  }

  /** Gives how long the object may rest now; `undefined` = the process ends. */
  async #attempt(
    kind: DeclaredKind,
    store: RunnableStore<Declared>,
    objects: { object: Declared; all: readonly Declared[] },
    cluster: Cluster,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    try {
      return await this.#reconcile(kind, store, objects, cluster, signal);
    } catch (error) {
      if (signal.aborted) return undefined;
      this.#context.logger.error("A declared object failed; it is tried again", { error });
      return isKubeError(error, "conflict") || objects.object.metadata.deletionTimestamp ? retryMs : restMs;
    }
  }

  /** Gives how long the object may rest now. */
  async #reconcile(
    kind: DeclaredKind,
    store: RunnableStore<Declared>,
    { object, all }: { object: Declared; all: readonly Declared[] },
    cluster: Cluster,
    signal: AbortSignal,
  ): Promise<number> {
    const { kube } = this.#context;
    const key = { namespace: object.metadata.namespace ?? "", name: object.metadata.name ?? "" };
    const deps = { context: this.#context, secrets: this.#secrets, cluster, signal };
    const finalizers = object.metadata.finalizers ?? [];
    const generation = object.metadata.generation ?? 0;
    const view: DeclarativeView = {
      generation,
      observedGeneration: object.status?.observedGeneration ?? 0,
      applied: object.status?.applied,
      deleting: object.metadata.deletionTimestamp !== undefined,
      hasFinalizer: finalizers.includes(kind.finalizer),
      reclaim: kind.reclaim(object),
      isReplicaCluster: isReplicaCluster(cluster),
      winner: all.find(
        (other) =>
          other.metadata.uid !== object.metadata.uid &&
          other.spec.name === object.spec.name &&
          (other.status?.observedGeneration ?? 0) > 0,
      )?.metadata.name,
      outdated: kind.isRenewed ? !kind.isRenewed(object) : false,
      refusal: kind.refusal?.(object, cluster),
    };
    const decision = await this.#decide(kind, object, view, deps);
    const report = async (fields: object) => {
      const written = await patchStatus(
        kube,
        kind.type,
        key,
        (current) => {
          const { applied: _applied, message: _message, ...kept } = current.status ?? {};
          return { ...current, status: { ...kept, ...fields } } as Declared;
        },
        { signal },
      );
      store.observeWrite(written);
    };
    switch (decision.kind) {
      case "nothing":
        return goodRestMs;
      case "waitForPromotion":
        await report({ message: "waiting for the cluster to become primary" });
        return restMs;
      case "refuse":
        await report({ applied: false, message: decision.message });
        return restMs;
      case "release":
        if (decision.drop) {
          await kind.drop(object, deps).catch(async (error: unknown) => {
            signal.throwIfAborted();
            await report({ applied: false, message: errorText(error) });
            throw error;
          });
        }
        await this.#setFinalizers(kind, key, (known) => known.filter((name) => name !== kind.finalizer), signal);
        return restMs;
      case "conflict":
        await report({
          applied: false,
          message: `${JSON.stringify(object.spec.name)} is already managed by object ${JSON.stringify(decision.winner)}`,
        });
        return restMs;
      case "apply": {
        if (!finalizers.includes(kind.finalizer) && !(await this.#isClusterThere(cluster, signal))) {
          const told = { kind: kind.type.kind, name: key.name };
          this.#context.logger.info("A declared object is left alone, as its Cluster is gone", told);
          return restMs;
        }
        await this.#setFinalizers(
          kind,
          key,
          (known) => (known.includes(kind.finalizer) ? known : [...known, kind.finalizer]),
          signal,
        );
        const result = await kind.apply(object, deps).catch((error: unknown): ApplyResult => {
          signal.throwIfAborted();
          return { failed: errorText(error), status: {} };
        });
        const outcome =
          result.failed === undefined
            ? { applied: true, observedGeneration: generation }
            : { applied: false, message: result.failed };
        await report({ ...result.status, ...outcome });
        return result.retryAfterMs ?? restMs;
      }
    }
  }

  /** What is done is looked at again: somebody may have changed it by hand, or it went with a former primary. */
  async #decide(
    kind: DeclaredKind,
    object: Declared,
    view: DeclarativeView,
    deps: ApplyDeps,
  ): Promise<DeclarativeDecision> {
    const decision = planDeclarative(view);
    if (decision.kind !== "nothing" || view.deleting || view.refusal !== undefined) return decision;
    const drift = await kind.findDrift(object, deps);
    if (drift.length === 0) return decision;
    this.#context.logger.info("A declared object is not as it was applied any more and is applied again", { drift });
    return planDeclarative({ ...view, outdated: true });
  }

  /** With the Cluster goes who would take a finalizer away again, and the object, and its namespace, could never be removed. */
  async #isClusterThere({ metadata }: Cluster, signal: AbortSignal): Promise<boolean> {
    const key = { namespace: metadata.namespace ?? "", name: metadata.name ?? "" };
    try {
      const live = await this.#context.kube.get(resources.clusters, key, { signal });
      return live.metadata.uid === metadata.uid && live.metadata.deletionTimestamp === undefined;
    } catch (error) {
      if (isKubeError(error, "notFound")) return false;
      throw error;
    }
  }

  async #setFinalizers(
    kind: DeclaredKind,
    key: { namespace: string; name: string },
    change: (known: string[]) => string[],
    signal: AbortSignal,
  ): Promise<void> {
    const { kube } = this.#context;
    const current = await kube.get(kind.type, key, { signal });
    const known = current.metadata.finalizers ?? [];
    const finalizers = change(known);
    if (finalizers.join() === known.join()) return;
    // The instances' Role lets them update these objects, not patch them; a conflict is tried again with the object.
    await kube.update(kind.type, { ...current, metadata: { ...current.metadata, finalizers } }, { signal });
  }
}
