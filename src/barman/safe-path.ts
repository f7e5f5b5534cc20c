/** Path of an archive's entry below the folder it is extracted into, empty for the folder itself; a reason when it leads out of it. */
export function checkEntryPath(name: string): { path: string } | { error: string } {
  if (name.includes("\0")) return { error: "its name holds a NUL" };
  if (name.startsWith("/")) return { error: "its name is absolute" };
  const parts = name.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.includes("..")) return { error: "its name leads out of the folder" };
  return { path: parts.join("/") };
}

/** The folders above a path, the outermost first. */
export function foldersAbove(path: string): string[] {
  const parts = path.split("/");
  return parts.slice(1).map((_part, at) => parts.slice(0, at + 1).join("/"));
}
