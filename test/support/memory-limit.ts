import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A limit that the kernel keeps by killing, as it does to a container. */
export interface MemoryLimit {
  /** How often the kernel has killed for it. */
  kills(): number;
  /** Takes the limit away; its process must have ended. */
  remove(): void;
}

const root = "/sys/fs/cgroup";

/** Lets a process take no more than so many bytes beside those that it has; needs root. */
export function limitMemory(pid: number, bytes: number): MemoryLimit {
  const isOld = existsSync(join(root, "memory/memory.limit_in_bytes"));
  const folder = join(root, isOld ? "memory" : "", `cnpg-ts-test-${randomUUID()}`);
  if (!isOld) writeFileSync(join(root, "cgroup.subtree_control"), "+memory");
  mkdirSync(folder);
  const write = (name: string, value: number) => writeFileSync(join(folder, name), String(value));
  write(isOld ? "memory.limit_in_bytes" : "memory.max", bytes);
  // What is swapped out is not lacking.
  if (!isOld && existsSync(join(folder, "memory.swap.max"))) write("memory.swap.max", 0);
  write("cgroup.procs", pid);
  return {
    kills() {
      const text = readFileSync(join(folder, isOld ? "memory.oom_control" : "memory.events"), "utf8");
      return Number(/^oom_kill (\d+)$/m.exec(text)?.[1] ?? 0);
    },
    remove: () => rmdirSync(folder),
  };
}
