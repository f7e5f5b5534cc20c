// Rules of the API server that the fake needs and that hold no state.
import { matchesFieldSelector, matchesLabelSelector } from "../../src/kube/selectors.ts";
import {
  KubeError,
  type KubeObject,
  type ListOptions,
  type ObjectKey,
  type ResourceType,
} from "../../src/ports/kube-api.ts";

/** One change that a watch may report. */
export interface LoggedEvent {
  version: number;
  type: "ADDED" | "MODIFIED" | "DELETED";
  object: KubeObject;
  previous?: KubeObject | undefined;
}

/** Whether a request with these options sees the object. */
export function isSelected(object: KubeObject, options: ListOptions): boolean {
  return (
    (options.namespace === undefined || object.metadata.namespace === options.namespace) &&
    matchesLabelSelector(options.labelSelector, object.metadata.labels) &&
    matchesFieldSelector(options.fieldSelector, object)
  );
}

/** A selecting watch sees objects enter and leave its selection as added and deleted. */
export function translate(event: LoggedEvent, options: ListOptions): LoggedEvent["type"] | undefined {
  const before = event.previous !== undefined && isSelected(event.previous, options);
  const after = event.type !== "DELETED" && isSelected(event.object, options);
  if (after) return before ? "MODIFIED" : "ADDED";
  return before ? "DELETED" : undefined;
}

/** Throws a conflict when the caller's version is not the current one. */
export function checkVersion(type: ResourceType<KubeObject>, current: KubeObject, version: string | undefined): void {
  if (version && version !== current.metadata.resourceVersion) {
    throw conflict(type, { name: current.metadata.name ?? "" }, "the object has been modified");
  }
}

/** The server's answer to a stale write. */
export function conflict(type: ResourceType<KubeObject>, key: ObjectKey, why: string): KubeError {
  return new KubeError(`${type.plural} "${key.name}": ${why}`, { kind: "conflict", status: 409 });
}

/** Kubernetes' time, in seconds. */
export function formatTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
