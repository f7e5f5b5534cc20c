import type { KubeApi, KubeObject, ListOptions, ResourceType } from "../ports/kube-api.ts";

/** One page of a list. */
export interface ListPage<T> {
  items: T[];
  /** Version of the whole list, where a watch goes on. */
  resourceVersion: string;
  /** Token of the next page; absent on the last one. */
  continue?: string;
}

export interface ListPageOptions extends ListOptions {
  limit?: number;
  continue?: string;
  timeoutMs?: number;
}

export type WatchEvent<T> =
  | { type: "ADDED" | "MODIFIED" | "DELETED"; object: T }
  /** Nothing older than this version is still to come. */
  | { type: "BOOKMARK"; resourceVersion: string };

export interface WatchOptions extends ListOptions {
  /** Events after this version are sent. */
  resourceVersion: string;
  /** The server ends the watch after this time. */
  timeoutSeconds: number;
  /** Called when the answer begins and for every piece of data, also when it carries no complete event. */
  onData?: () => void;
}

/** What a store needs: single requests that are never repeated behind its back. */
export interface ListWatch {
  listPage<T extends KubeObject>(type: ResourceType<T>, options?: ListPageOptions): Promise<ListPage<T>>;
  /** Ends when the server ends it; throws a KubeError (`gone` for a version that is too old) otherwise. */
  watch<T extends KubeObject>(type: ResourceType<T>, options: WatchOptions): AsyncGenerator<WatchEvent<T>, void, void>;
}

/** The whole client. */
export interface KubeClient extends KubeApi, ListWatch {
  /** Whether the server knows the kind; throws when it cannot be asked. */
  serves(type: ResourceType<KubeObject>, options?: { signal?: AbortSignal }): Promise<boolean>;
  /** For example `v1.34.1`. */
  serverVersion(options?: { signal?: AbortSignal }): Promise<string>;
  /** Ends all connections; requests under way fail. */
  close(): Promise<void>;
}
