import type { KubeObject, StoreEvent } from "../ports/kube-api.ts";
import { formatKey } from "./resource-path.ts";

/**
 * The local copy of one kind, without any I/O: lists, watch events and own writes go in, what changed comes out. Versions of
 * one server are comparable numbers; everything here rests on never going back to an older one of the same object.
 */
export class StoreState<T extends KubeObject> {
  readonly #objects = new Map<string, T>();
  readonly #byNamespace = new Map<string, Map<string, T>>();
  #all: readonly T[] | undefined;
  /** Everything up to this version of the collection is reflected; empty before the first list. */
  #seen = "";

  get seenVersion(): string {
    return this.#seen;
  }

  get size(): number {
    return this.#objects.size;
  }

  get(key: { namespace?: string; name: string }): T | undefined {
    return this.#objects.get(formatKey(key));
  }

  list(namespace?: string): readonly T[] {
    if (namespace !== undefined) return [...(this.#byNamespace.get(namespace)?.values() ?? [])];
    this.#all ??= [...this.#objects.values()];
    return this.#all;
  }

  /** Takes a complete list; what it lacks is gone, unless this process wrote it after the list was made. */
  applyList(items: readonly T[], version: string): StoreEvent<T>[] {
    const events: StoreEvent<T>[] = [];
    // After a restore from backup the server's versions start lower; then the list is the only truth.
    const restarted = compareVersions(version, this.#seen) < 0;
    const listed = new Set(items.map(keyOf));
    for (const object of [...this.#objects.values()]) {
      const newer = !restarted && compareVersions(versionOf(object), version) > 0;
      if (!listed.has(keyOf(object)) && !newer) events.push(this.#remove(object));
    }
    for (const item of items) events.push(...this.#put(item, restarted));
    this.#seen = version;
    return events;
  }

  applyWatch(type: "ADDED" | "MODIFIED" | "DELETED", object: T): StoreEvent<T>[] {
    this.applyBookmark(versionOf(object));
    if (type !== "DELETED") return this.#put(object, false);
    const known = this.#objects.get(keyOf(object));
    // A write of ours may already have shown a successor of the deleted object.
    if (!known || compareVersions(versionOf(known), versionOf(object)) > 0) return [];
    this.#remove(known);
    // The last state tells subscribers more than the last one that was stored.
    return [{ type: "deleted", object }];
  }

  applyBookmark(version: string): void {
    if (version && compareVersions(version, this.#seen) > 0) this.#seen = version;
  }

  /** Takes an object that this process has just written, unless the watch is past that point already. */
  applyWrite(object: T, matches: boolean): StoreEvent<T>[] {
    const version = versionOf(object);
    const known = this.#objects.get(keyOf(object));
    if (this.#seen === "" || compareVersions(version, this.#seen) <= 0) return [];
    if (matches) return this.#put(object, false);
    if (!known || compareVersions(versionOf(known), version) > 0) return [];
    return [this.#remove(known)];
  }

  #put(object: T, force: boolean): StoreEvent<T>[] {
    const key = keyOf(object);
    const previous = this.#objects.get(key);
    if (previous && !force && compareVersions(versionOf(object), versionOf(previous)) <= 0) return [];
    const replaced = previous !== undefined && previous.metadata.uid !== object.metadata.uid;
    const events: StoreEvent<T>[] = replaced ? [this.#remove(previous)] : [];
    this.#objects.set(key, object);
    this.#all = undefined;
    const { namespace } = object.metadata;
    if (namespace) {
      const siblings = this.#byNamespace.get(namespace) ?? new Map<string, T>();
      siblings.set(key, object);
      this.#byNamespace.set(namespace, siblings);
    }
    if (!previous || replaced) events.push({ type: "added", object });
    else if (!force || versionOf(previous) !== versionOf(object)) events.push({ type: "updated", object, previous });
    return events;
  }

  #remove(object: T): StoreEvent<T> {
    const key = keyOf(object);
    this.#objects.delete(key);
    this.#all = undefined;
    const { namespace } = object.metadata;
    const siblings = namespace ? this.#byNamespace.get(namespace) : undefined;
    siblings?.delete(key);
    if (namespace && siblings?.size === 0) this.#byNamespace.delete(namespace);
    return { type: "deleted", object };
  }
}

/** Order of two resource versions; an empty or foreign one counts as older than any number. */
export function compareVersions(a: string, b: string): number {
  const left = /^\d+$/.test(a) ? a.replace(/^0+(?=\d)/, "") : "";
  const right = /^\d+$/.test(b) ? b.replace(/^0+(?=\d)/, "") : "";
  if (left.length !== right.length) return left.length - right.length;
  return left < right ? -1 : left > right ? 1 : 0;
}

function keyOf(object: KubeObject): string {
  return formatKey(object.metadata);
}

function versionOf(object: KubeObject): string {
  return object.metadata.resourceVersion ?? "";
}
