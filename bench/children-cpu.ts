import { readFile } from "node:fs/promises";

/** Ticks of the kernel's accounting in a second, on every machine that Linux runs on. */
const ticksPerSecond = 100;
/** Places of `cutime` and `cstime`, counted behind the name. */
const [userField, systemField] = [13, 14];

/** Seconds of processor time of the processes that this one has started and that have ended, those that they started included. */
export async function endedChildrenCpu(): Promise<number> {
  const text = await readFile("/proc/self/stat", "utf8");
  // The name in parentheses may hold anything.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[userField]) + Number(fields[systemField])) / ticksPerSecond;
}
