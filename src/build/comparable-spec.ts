import { paths } from "../api/constants.ts";
import type { Container, PodSpec, Volume } from "../api/generated/kubernetes.ts";
import { parseQuantity } from "../api/quantity.ts";

/** A pod spec in a form in which equal meaning is equal JSON: quantities by value, no empty fields, volume names of today. */
export function comparableSpec(spec: PodSpec): PodSpec {
  const renamed = {
    ...spec,
    volumes: (spec.volumes ?? []).map(prefixedVolume),
    containers: spec.containers.map(prefixedMounts),
    initContainers: (spec.initContainers ?? []).map(prefixedMounts),
  };
  const plain = (normalize(renamed) ?? {}) as PodSpec;
  return { ...plain, containers: plain.containers ?? [] };
}

/** Earlier versions named the volumes of tablespaces and extensions without a prefix. */
function prefixedVolume(volume: Volume): Volume {
  if (volume.persistentVolumeClaim?.claimName.includes("-tbs-"))
    return { ...volume, name: prefixed("tbs-", volume.name) };
  return volume.image ? { ...volume, name: prefixed("ext-", volume.name) } : volume;
}

function prefixedMounts(container: Container): Container {
  const volumeMounts = (container.volumeMounts ?? []).map((mount) => {
    if (mount.mountPath.startsWith(`${paths.tablespaces}/`)) return { ...mount, name: prefixed("tbs-", mount.name) };
    if (!mount.mountPath.startsWith("/extensions/")) return mount;
    // Images can only be mounted read-only, so the flag says nothing.
    const { readOnly: _, ...rest } = mount;
    return { ...rest, name: prefixed("ext-", mount.name) };
  });
  return { ...container, volumeMounts };
}

function prefixed(prefix: string, name: string): string {
  return name.startsWith(prefix) ? name : prefix + name;
}

const quantityFields = new Set(["sizeLimit", "divisor"]);
const quantityMaps = new Set(["limits", "requests"]);

/** Drops what says nothing (null, empty lists and objects, default modes, zero divisors) and writes quantities one way. */
function normalize(value: unknown, key = "", parentKey = ""): unknown {
  if (value === null || value === undefined) return undefined;
  if (key === "defaultMode" && value === 420) return undefined;
  if ((quantityFields.has(key) || quantityMaps.has(parentKey)) && isScalar(value)) {
    const quantity = parseQuantity(value);
    if (quantity === undefined) return value;
    return key === "divisor" && quantity === 0n ? undefined : `quantity ${quantity}`;
  }
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map((item) => normalize(item) ?? {});
  if (typeof value !== "object") return value;
  const entries = Object.entries(value)
    .map(([name, field]) => [name, normalize(field, name, key)] as const)
    .filter(([, field]) => field !== undefined);
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

function isScalar(value: unknown): value is string | number {
  return typeof value === "string" || typeof value === "number";
}
