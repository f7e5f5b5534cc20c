import { annotations } from "./labels.ts";

type Annotated = { metadata: { annotations?: Record<string, string> } };

/** Which instances the fencing annotation names. Invalid JSON fences nobody, as the original has it. */
export type Fencing = { kind: "none" } | { kind: "all" } | { kind: "some"; names: readonly string[] };

export function parseFencing(object: Annotated): Fencing {
  const text = object.metadata.annotations?.[annotations.fencedInstances];
  if (!text) return { kind: "none" };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { kind: "none" };
  }
  if (!Array.isArray(value)) return { kind: "none" };
  const names = value.filter((name): name is string => typeof name === "string");
  if (names.includes("*")) return { kind: "all" };
  return names.length > 0 ? { kind: "some", names } : { kind: "none" };
}

/** Whether the fencing applies to one instance. */
export function isFenced(fencing: Fencing, instance: string): boolean {
  return fencing.kind === "all" || (fencing.kind === "some" && fencing.names.includes(instance));
}

/** State of a volume as its annotation tells it; an unknown word means that the volume is left alone. */
export type PvcStatus = "initializing" | "ready" | "ignored";

export function parsePvcStatus(object: Annotated): PvcStatus {
  const value = object.metadata.annotations?.[annotations.pvcStatus] ?? "";
  if (value === "" || value === "initializing") return "initializing";
  return value === "ready" ? "ready" : "ignored";
}

/** Serial of an instance from the annotation of its pod or volume; `undefined` when absent or not a positive integer. */
export function parseNodeSerial(object: Annotated): number | undefined {
  const text = object.metadata.annotations?.[annotations.nodeSerial] ?? "";
  return /^[1-9][0-9]*$/.test(text) ? Number(text) : undefined;
}

/** Parses a boolean as Go's strconv.ParseBool spells it. */
export function parseGoBoolean(text: string | undefined): boolean | undefined {
  if (text === undefined) return undefined;
  if (["1", "t", "T", "TRUE", "true", "True"].includes(text)) return true;
  return ["0", "f", "F", "FALSE", "false", "False"].includes(text) ? false : undefined;
}
