import type { Clock } from "../../ports/clock.ts";
import type { KubeApi, KubeObject, ObjectKey, ResourceType } from "../../ports/kube-api.ts";

/** Age up to which an answer is given again, milliseconds. */
export const cacheMs = 10_000;

/** Reads objects one by one and remembers each answer for a while: an instance may neither list nor watch these kinds. */
export class CachedReader {
  readonly #api: KubeApi;
  readonly #clock: Clock;
  readonly #ttlMs: number;
  readonly #entries = new Map<string, { object: Promise<KubeObject>; atMs: number }>();

  constructor(api: KubeApi, clock: Clock, ttlMs = cacheMs) {
    this.#api = api;
    this.#clock = clock;
    this.#ttlMs = ttlMs;
  }

  /** Kinds are told apart: a Secret and an ObjectStore may share a name. Failures are not remembered. */
  get<T extends KubeObject>(type: ResourceType<T>, key: ObjectKey): Promise<T> {
    const id = identify(type, key);
    const known = this.#entries.get(id);
    if (known && this.#clock.monotonicMs() - known.atMs < this.#ttlMs) return known.object as Promise<T>;
    const object = this.#api.get(type, key);
    const entry = { object, atMs: this.#clock.monotonicMs() };
    this.#entries.set(id, entry);
    object.catch(() => {
      if (this.#entries.get(id) === entry) this.#entries.delete(id);
    });
    return object;
  }

  /** The next read asks the server. */
  forget(type: ResourceType<KubeObject>, key: ObjectKey): void {
    this.#entries.delete(identify(type, key));
  }
}

function identify(type: ResourceType<KubeObject>, { namespace = "", name }: ObjectKey): string {
  return [type.group, type.version, type.plural, namespace, name].join("/");
}
