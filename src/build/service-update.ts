import type { Service, ServicePort, ServiceSpec } from "../api/generated/kubernetes.ts";
import { annotations } from "../api/labels.ts";
import { applyMergePatch, createMergePatch } from "./merge-patch.ts";
import { mergeMetadata } from "./metadata-repair.ts";
import { sameJson } from "./same-json.ts";

/** What to do about an owned Service that exists. */
export type ServiceUpdate =
  | { kind: "none" }
  | { kind: "update"; service: Service; reason: string }
  | { kind: "recreate"; reason: string };

type JsonObject = Record<string, unknown>;

/**
 * Compares a live Service with the wanted one. Of the spec only what changed since it was last applied is carried over, so
 * that fields filled in by the API server or by others stay. A Service with the strategy `replace` is recreated for any change
 * that the user made, labels and annotations too, but not because another operator version looks after it.
 */
export function planServiceUpdate(live: Service, proposed: Service): ServiceUpdate {
  const name = live.metadata.name ?? "";
  const lastApplied = parseLastApplied(live);
  const spec = mergeSpec(live.spec ?? {}, lastApplied, proposed.spec ?? {});
  const specChanged = !sameJson(spec, live.spec ?? {});
  const noteChanged = !sameJson(lastApplied, proposed.spec ?? {});
  const metadata = mergeMetadata(live.metadata, withoutNote(proposed.metadata));
  if (!specChanged && !noteChanged && !metadata) return { kind: "none" };
  const changes = [...(specChanged ? ["spec"] : []), ...(metadata ? ["metadata"] : [])].join(" and ");
  const reason = `service ${name} differs in its ${changes || "note of the last applied spec"}`;
  const isUsersChange = specChanged || mergeMetadata(live.metadata, withoutVersion(proposed.metadata)) !== null;
  if (isUsersChange && proposed.metadata.annotations?.[annotations.updateStrategy] === "replace")
    return { kind: "recreate", reason };
  return {
    kind: "update",
    reason,
    service: { ...live, metadata: withNote(metadata ?? live.metadata, proposed), spec },
  };
}

function mergeSpec(live: ServiceSpec, lastApplied: JsonObject | undefined, proposed: ServiceSpec): ServiceSpec {
  const patch = lastApplied ? createMergePatch(lastApplied, proposed as JsonObject) : (proposed as JsonObject);
  const merged = applyMergePatch(live as JsonObject, patch) as ServiceSpec;
  if (!merged.ports) return merged;
  return { ...merged, ports: merged.ports.map((port) => keepAssigned(port, live.ports ?? [])) };
}

/** Keeps what the API server assigned to a port that the proposal leaves open. */
function keepAssigned(port: ServicePort, live: readonly ServicePort[]): ServicePort {
  const before = live.find(
    (candidate) => candidate.port === port.port && (candidate.protocol ?? "TCP") === (port.protocol ?? "TCP"),
  );
  if (!before) return port;
  const kept: ServicePort = { ...port };
  if (kept.protocol === undefined && before.protocol !== undefined) kept.protocol = before.protocol;
  if (kept.targetPort === undefined && before.targetPort !== undefined) kept.targetPort = before.targetPort;
  if (!kept.nodePort && before.nodePort !== undefined) kept.nodePort = before.nodePort;
  return kept;
}

function parseLastApplied(live: Service): JsonObject | undefined {
  const text = live.metadata.annotations?.[annotations.lastAppliedSpec];
  if (!text) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
  } catch {
    return undefined;
  }
}

function withoutNote(metadata: Service["metadata"]): Service["metadata"] {
  const { [annotations.lastAppliedSpec]: _, ...rest } = metadata.annotations ?? {};
  return { ...metadata, annotations: rest };
}

function withoutVersion(metadata: Service["metadata"]): Service["metadata"] {
  const { [annotations.operatorVersion]: _, ...rest } = withoutNote(metadata).annotations ?? {};
  return { ...metadata, annotations: rest };
}

function withNote(metadata: Service["metadata"], proposed: Service): Service["metadata"] {
  const note = JSON.stringify(proposed.spec ?? {});
  return { ...metadata, annotations: { ...metadata.annotations, [annotations.lastAppliedSpec]: note } };
}
