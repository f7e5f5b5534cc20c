import { parseInstanceSerial } from "../../api/names.ts";

/** The lowest serials from 1 that no instance uses, `count` of them, ascending. */
export function freeSerials(cluster: string, instanceNames: readonly string[], count: number): number[] {
  const used = new Set(instanceNames.map((name) => parseInstanceSerial(cluster, name)));
  const free: number[] = [];
  for (let serial = 1; free.length < count; serial += 1) {
    if (!used.has(serial)) free.push(serial);
  }
  return free;
}
