import type { Cluster } from "../api/generated/cluster.ts";

/** An extension that comes as an image volume. */
export type ImageExtension = NonNullable<
  NonNullable<NonNullable<Cluster["status"]>["pgDataImageInfo"]>["extensions"]
>[number];

/** Where extension volumes are mounted; the second one is for the target version during a major upgrade. */
export type ExtensionRoot = "/extensions" | "/new-extensions";

/** Values of the two path settings, or nothing when there is no extension. */
export function buildExtensionPaths(
  extensions: readonly ImageExtension[],
  root: ExtensionRoot,
  user: { extensionControlPath?: string; dynamicLibraryPath?: string },
): { extension_control_path: string; dynamic_library_path: string } | undefined {
  if (extensions.length === 0) return undefined;
  return {
    extension_control_path: joinPath(
      "$system",
      extensions.flatMap((extension) => mounted(extension, root, listOr(extension.extension_control_path, "share"))),
      user.extensionControlPath,
    ),
    dynamic_library_path: joinPath(
      "$libdir",
      extensions.flatMap((extension) => mounted(extension, root, listOr(extension.dynamic_library_path, "lib"))),
      user.dynamicLibraryPath,
    ),
  };
}

/** Environment that the postmaster needs for its image extensions, added to what it has already. */
export function buildExtensionEnvironment(
  extensions: readonly ImageExtension[],
  root: ExtensionRoot,
  base: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const environment: Record<string, string> = {};
  for (const extension of extensions) {
    for (const { name, value } of extension.env ?? []) {
      if (!isReservedVariable(name)) environment[name] = expandRoot(value, `${root}/${extension.name}`);
    }
  }
  const libraries = extensions.flatMap((extension) => mounted(extension, root, extension.ld_library_path ?? []));
  const binaries = extensions.flatMap((extension) => mounted(extension, root, extension.bin_path ?? []));
  if (libraries.length > 0) environment["LD_LIBRARY_PATH"] = append(base["LD_LIBRARY_PATH"], libraries);
  if (binaries.length > 0) environment["PATH"] = append(base["PATH"], binaries);
  return environment;
}

function isReservedVariable(name: string): boolean {
  const upper = name.toUpperCase();
  return (
    upper.startsWith("PG") ||
    upper.startsWith("CNPG_") ||
    ["POD_NAME", "NAMESPACE", "CLUSTER_NAME", "PATH", "LD_LIBRARY_PATH"].includes(upper)
  );
}

function expandRoot(value: string, mount: string): string {
  return value.replace(/\$?\$\{image_root\}/g, (match) => (match.startsWith("$$") ? match.slice(1) : mount));
}

function listOr(list: readonly string[] | undefined, fallback: string): readonly string[] {
  return list && list.length > 0 ? list : [fallback];
}

function mounted(extension: ImageExtension, root: ExtensionRoot, folders: readonly string[]): string[] {
  return folders.map((folder) => cleanPath(`${root}/${extension.name}/${folder}`));
}

/** Resolves `.` and `..` and doubled slashes of an absolute path. */
function cleanPath(path: string): string {
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "" || part === ".") continue;
    if (part === "..") parts.pop();
    else parts.push(part);
  }
  return `/${parts.join("/")}`;
}

function joinPath(first: string, own: readonly string[], user: string | undefined): string {
  const rest = (user ?? "").split(":").filter((part) => part !== "");
  return [first, ...own, ...rest].join(":");
}

function append(value: string | undefined, paths: readonly string[]): string {
  return [...(value ? [value] : []), ...paths].join(":");
}
