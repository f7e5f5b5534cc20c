import type { PluginDocument } from "../../ports/plugin.ts";
import { WireError } from "./wire-error.ts";

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration";
const encoder = new TextEncoder();

/** JSON text of an object; a text is taken as it is. The object must say its apiVersion and kind. */
export function encodeDocument(document: PluginDocument): Uint8Array {
  if (document instanceof Uint8Array) return document;
  const { apiVersion, kind } = document as { apiVersion?: unknown; kind?: unknown };
  if (typeof apiVersion !== "string" || typeof kind !== "string") {
    throw new TypeError("an object for a plugin has no apiVersion or kind; set both, plugins dispatch on them");
  }
  return toJson(document);
}

/**
 * JSON text of a Cluster as plugins get it: always with apiVersion and kind, without managedFields and kubectl's own copy
 * of the object, which can be most of the text and which no plugin reads.
 */
export function encodeCluster(cluster: PluginDocument): Uint8Array {
  return encodeOwned(cluster, "Cluster");
}

/** As `encodeCluster`, for a Backup. */
export function encodeBackup(backup: PluginDocument): Uint8Array {
  return encodeOwned(backup, "Backup");
}

/** The object in a message. Unknown fields stay, and a missing apiVersion or kind is no error: some Go paths lose them. */
export function decodeDocument<T extends object>(bytes: Uint8Array, field: string): T {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8"));
  } catch (cause) {
    throw new WireError(`${field} is not JSON`, { cause });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new WireError(`${field} is not a JSON object`);
  }
  return value as T;
}

interface Owned {
  apiVersion?: string;
  kind?: string;
  metadata?: { managedFields?: unknown; annotations?: Record<string, string> };
}

function encodeOwned(document: PluginDocument, kind: string): Uint8Array {
  if (document instanceof Uint8Array) return document;
  const { apiVersion, kind: own, metadata, ...rest } = document as Owned;
  return toJson({ apiVersion: apiVersion ?? "postgresql.cnpg.io/v1", kind: own ?? kind, ...trim(metadata), ...rest });
}

function trim(metadata: Owned["metadata"]): { metadata?: object } {
  if (!metadata) return {};
  const { managedFields: _, annotations, ...rest } = metadata;
  if (!annotations) return { metadata: rest };
  const { [lastApplied]: __, ...others } = annotations;
  return { metadata: { ...rest, annotations: others } };
}

function toJson(value: unknown): Uint8Array {
  return encoder.encode(JSON.stringify(value));
}
