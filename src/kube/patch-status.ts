import type { KubeApi, KubeObject, ObjectKey, ResourceType } from "../ports/kube-api.ts";
import { isKubeError } from "../ports/kube-api.ts";
import { diffMergePatch } from "./merge-patch.ts";

export interface PatchOptions {
  /** Reads and writes before a conflict is given up. @default 5 */
  maxAttempts?: number;
  signal?: AbortSignal;
  /** A copy to start from that saves the first read; a conflict leads to a fresh one. */
  current?: unknown;
}

/**
 * Changes the status of an object: reads it, lets `mutate` return what it should be (or `undefined` for no change), and
 * patches only the fields that differ, on the condition that nobody changed the object meanwhile; else starts over.
 * Returns the object as it is afterwards.
 */
export function patchStatus<T extends KubeObject>(
  api: KubeApi,
  type: ResourceType<T>,
  key: ObjectKey,
  mutate: (current: T) => T | undefined,
  options: PatchOptions = {},
): Promise<T> {
  return patchWith(api, type, key, mutate, "status", options);
}

/** As `patchStatus`, for everything but the status. */
export function patchObject<T extends KubeObject>(
  api: KubeApi,
  type: ResourceType<T>,
  key: ObjectKey,
  mutate: (current: T) => T | undefined,
  options: PatchOptions = {},
): Promise<T> {
  return patchWith(api, type, key, mutate, undefined, options);
}

async function patchWith<T extends KubeObject>(
  api: KubeApi,
  type: ResourceType<T>,
  key: ObjectKey,
  mutate: (current: T) => T | undefined,
  subresource: string | undefined,
  options: PatchOptions,
): Promise<T> {
  const { maxAttempts = 5, signal } = options;
  const withSignal = signal ? { signal } : {};
  let known = options.current as T | undefined;
  for (let attempt = 1; ; attempt++) {
    const current = known ?? (await api.get(type, key, withSignal));
    known = undefined;
    const body = buildPatch(current, mutate(structuredClone(current)), subresource);
    if (!body) return current;
    try {
      return await api.patch(
        type,
        key,
        { type: "merge", body },
        { ...withSignal, ...(subresource ? { subresource } : {}) },
      );
    } catch (error) {
      if (!isKubeError(error, "conflict") || attempt >= maxAttempts) throw error;
    }
  }
}

function buildPatch<T extends KubeObject>(current: T, wanted: T | undefined, subresource: string | undefined) {
  if (!wanted) return undefined;
  const diff = diffMergePatch(selectPart(current, subresource), selectPart(wanted, subresource));
  if (!diff) return undefined;
  const metadata = { ...(diff["metadata"] as object | undefined), resourceVersion: current.metadata.resourceVersion };
  return { ...diff, metadata };
}

/** Only the part that the request is about may differ, so that a stray change elsewhere is never sent. */
function selectPart(object: KubeObject, subresource: string | undefined): Record<string, unknown> {
  const fields = object as unknown as Record<string, unknown>;
  if (subresource) return { [subresource]: fields[subresource] ?? {} };
  const { status: _status, ...rest } = fields;
  return rest;
}
