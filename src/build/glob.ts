/** Whether a key matches a shell pattern; `*` and `?` never match a slash. */
export function matchesGlob(pattern: string, key: string): boolean {
  const expression = compileGlob(pattern);
  return expression?.test(key) ?? false;
}

function compileGlob(pattern: string): RegExp | undefined {
  let source = "";
  for (let i = 0; i < pattern.length; i++) {
    const char = pattern[i] as string;
    if (char === "*") source += "[^/]*";
    else if (char === "?") source += "[^/]";
    else if (char === "[") {
      const set = compileSet(pattern, i);
      if (!set) return undefined;
      source += set.source;
      i = set.end;
    } else if (char === "\\") {
      const next = pattern[++i];
      // A pattern that ends in a bare escape is malformed and matches nothing.
      if (next === undefined) return undefined;
      source += escapeChar(next);
    } else source += escapeChar(char);
  }
  return new RegExp(`^${source}$`, "su");
}

function compileSet(pattern: string, start: number): { source: string; end: number } | undefined {
  let end = start + 1;
  const negated = pattern[end] === "^";
  if (negated) end++;
  let members = "";
  for (; end < pattern.length && (pattern[end] !== "]" || members === ""); end++) {
    const escaped = pattern[end] === "\\";
    if (escaped) end++;
    const char = pattern[end];
    if (char === undefined) return undefined;
    members += char === "-" && !escaped ? "-" : /[\\\]^-]/.test(char) ? `\\${char}` : char;
  }
  if (pattern[end] !== "]") return undefined;
  return { source: `(?!/)[${negated ? "^" : ""}${members}]`, end };
}

function escapeChar(char: string): string {
  return char.replace(/[\\^$.*+?()[\]{}|/]/, "\\$&");
}
