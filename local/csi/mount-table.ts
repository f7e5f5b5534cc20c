/** One line of /proc/PID/mountinfo. */
export interface MountEntry {
  path: string;
  /** For a filesystem on a block device, the device. */
  source: string;
}

/** Reads the text of /proc/PID/mountinfo. */
export function parseMountTable(text: string): MountEntry[] {
  return text
    .split("\n")
    .filter(Boolean)
    .map((line) => {
      const [before = "", after = ""] = line.split(" - ");
      return { path: decodeOctal(before.split(" ")[4] ?? ""), source: decodeOctal(after.split(" ")[1] ?? "") };
    });
}

/** What is mounted at a path, the uppermost when there is more than one; undefined when nothing is. */
export function findMount(table: readonly MountEntry[], path: string): MountEntry | undefined {
  return table.findLast((entry) => entry.path === path);
}

/** Spaces, tabs, line ends and backslashes stand as octal numbers there. */
function decodeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}
