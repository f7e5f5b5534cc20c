import { readdir } from "node:fs/promises";
import { dirname } from "node:path";

/** Architectures that the release next to a program carries, as `operator/manager_*` files. */
export async function listArchitectures(program: string): Promise<string[]> {
  const names = await readdir(`${dirname(program)}/operator`).catch(() => []);
  return names.flatMap((name) => (name.startsWith("manager_") ? [name.slice("manager_".length)] : [])).sort();
}
