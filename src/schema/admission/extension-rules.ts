import type { Cluster } from "../../api/generated/cluster.ts";
import { extensionVolumeName } from "../../api/names.ts";
import { isReservedVariable, reservedVariableMessage } from "./environment-rules.ts";
import { duplicate, type FieldIssue, forbidden, invalid } from "./field-issue.ts";
import { type ClusterRule, when } from "./rule.ts";

type Extension = NonNullable<NonNullable<Cluster["spec"]["postgresql"]>["extensions"]>[number];

/** Extensions that come as images. */
export const checkExtensions: ClusterRule = ({ spec }) => {
  const extensions = spec.postgresql?.extensions ?? [];
  const names = new Set<string>();
  const volumes = new Set<string>();
  return extensions.flatMap((extension, i) => {
    const path = `spec.postgresql.extensions[${i}]`;
    const { name } = extension;
    const volume = extensionVolumeName(name);
    const sameName = names.has(name);
    const sameVolume = volumes.has(volume);
    names.add(name);
    volumes.add(volume);
    return [
      ...when(name === "", invalid(`${path}.name`, name, "value cannot be empty")),
      ...when(sameName, duplicate(`${path}.name`, name)),
      ...when(
        sameVolume && !sameName,
        invalid(
          `${path}.name`,
          name,
          `extension name results in duplicate volume name "${volume}" after sanitization ` +
            "(underscores are converted to hyphens)",
        ),
      ),
      ...when(
        !extension.image?.reference && !spec.imageCatalogRef,
        invalid(
          `${path}.image.reference`,
          extension.image?.reference ?? "",
          `Image reference for extension \`${name}\` must be set when no image catalog is configured`,
        ),
      ),
      ...checkPaths(path, extension),
      ...checkVariables(path, extension),
    ];
  });
};

const pathFields = ["extension_control_path", "dynamic_library_path", "ld_library_path", "bin_path"] as const;

function checkPaths(path: string, extension: Extension): FieldIssue[] {
  return pathFields.flatMap((field) => {
    const seen = new Set<string>();
    return (extension[field] ?? []).flatMap((entry, j) => {
      const where = `${path}.${field}[${j}]`;
      const repeated = seen.has(entry);
      seen.add(entry);
      return [
        ...when(entry === "", invalid(where, entry, "value cannot be empty")),
        ...when(repeated, duplicate(where, entry)),
        ...when(escapes(entry), invalid(where, entry, "path must not escape the extension directory")),
      ];
    });
  });
}

/** Whether a relative path leads out of the folder it starts in. */
function escapes(path: string): boolean {
  let depth = 0;
  for (const part of path.split("/")) {
    if (part === "" || part === ".") continue;
    depth += part === ".." ? -1 : 1;
    if (depth < 0) return true;
  }
  return false;
}

const pathVariables: Record<string, string> = { PATH: "bin_path", LD_LIBRARY_PATH: "ld_library_path" };

function checkVariables(path: string, { env = [] }: Extension): FieldIssue[] {
  const seen = new Set<string>();
  return env.flatMap(({ name, value }, j) => {
    const where = `${path}.env[${j}]`;
    const repeated = seen.has(name);
    seen.add(name);
    const pathField = pathVariables[name.toUpperCase()];
    const unknown = unknownPlaceholders(value);
    return [
      ...when(isReservedVariable(name), invalid(`${where}.name`, name, reservedVariableMessage)),
      ...when(pathField !== undefined, forbidden(`${where}.name`, `${name} must be configured via ${pathField}`)),
      ...when(
        unknown.length > 0,
        invalid(
          `${where}.value`,
          value,
          `unsupported placeholder(s): ${unknown.join(", ")}; supported: \${image_root}`,
        ),
      ),
      ...when(repeated, duplicate(`${where}.name`, name)),
    ];
  });
}

/** A doubled dollar sign stands for itself. */
function unknownPlaceholders(value: string): string[] {
  return [...value.matchAll(/\$?\$\{[^}]*\}/g)]
    .map(([placeholder]) => placeholder)
    .filter((placeholder) => !placeholder.startsWith("$$") && !/^\$\{image_root\}$/.test(placeholder));
}
