/** Files that `postgresql.conf` has to include, in the order in which they override each other. */
export const includedFiles = ["custom.conf", "override.conf"] as const;

/** Adds the include lines that are missing to the text of `postgresql.conf`. */
export function ensureIncludes(text: string): { text: string; changed: boolean } {
  let result = text;
  for (const file of includedFiles) {
    if (hasInclude(result, file)) continue;
    const separator = result === "" || result.endsWith("\n") ? "" : "\n";
    result += `${separator}\n# ${file} is written by CloudNativePG; changes in it are lost\ninclude '${file}'\n`;
  }
  return { text: result, changed: result !== text };
}

function hasInclude(text: string, file: string): boolean {
  const escaped = file.replaceAll(".", "\\.");
  return new RegExp(`^\\s*include\\s+'${escaped}'\\s*(#.*)?$`, "m").test(text);
}
