/** Whether a database name is a pattern instead of a name. */
export function isGlob(pattern: string): boolean {
  return /[*?[\\]/.test(pattern);
}

/** Compiles a shell pattern (`*`, `?`, `[a-z]`, `[^a]`, backslash); `undefined` when it is malformed. */
export function compileGlob(pattern: string): RegExp | undefined {
  let source = "";
  for (let index = 0; index < pattern.length; index += 1) {
    const char = pattern.charAt(index);
    if (char === "*") source += "[^/]*";
    else if (char === "?") source += "[^/]";
    else if (char === "\\") {
      index += 1;
      if (index === pattern.length) return undefined;
      source += escapeRegExp(pattern.charAt(index));
    } else if (char === "[") {
      const end = pattern.indexOf("]", index + 2);
      if (end === -1) return undefined;
      const body = pattern.slice(index + 1, end);
      const negated = body.startsWith("^");
      source += `[${negated ? "^" : ""}${(negated ? body.slice(1) : body).replace(/[\\\]^[]/g, "\\$&")}]`;
      index = end;
    } else source += escapeRegExp(char);
  }
  try {
    return new RegExp(`^${source}$`, "su");
  } catch {
    return undefined;
  }
}

function escapeRegExp(char: string): string {
  return char.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}
