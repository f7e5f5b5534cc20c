/**
 * Compiles a regular expression of the dialect that CloudNativePG takes (RE2); `undefined` when it is none, which look-around and
 * back references make it.
 */
export function compileGoPattern(pattern: string): RegExp | undefined {
  if (hasUnsafeConstruct(pattern)) return undefined;
  const spelled = toJavaScript(pattern);
  // Older engines know no flags within a pattern; there the check of the syntax is all that is asked for.
  return compile(withFlags(spelled)) ?? compile(withoutFlags(spelled));
}

function compile(source: string): RegExp | undefined {
  try {
    return new RegExp(source);
  } catch {
    return undefined;
  }
}

function hasUnsafeConstruct(pattern: string): boolean {
  const bare = pattern.replace(/\\\\/g, "");
  return /\(\?(=|!|<=|<!)/.test(bare) || /\\[1-9]/.test(bare) || /\\k</.test(bare);
}

const classes: Readonly<Record<string, string>> = {
  alnum: "A-Za-z0-9",
  alpha: "A-Za-z",
  digit: "0-9",
  lower: "a-z",
  space: "\\s",
  upper: "A-Z",
  word: "\\w",
  xdigit: "0-9A-Fa-f",
};

/** Spells the few constructs that differ between the two dialects. */
function toJavaScript(pattern: string): string {
  return pattern
    .replace(/\(\?P</g, "(?<")
    .replace(/\\A/g, "^")
    .replace(/\\z/g, "$")
    .replace(/\[:(\w+):\]/g, (text, name: string) => classes[name] ?? text);
}

/** Flags that begin a pattern hold for all of it; which of two matches is the longer one is of no matter to us. */
function withFlags(pattern: string): string {
  const leading = /^\(\?([imsU]+)\)/.exec(pattern);
  const kept = leading?.[1]?.replaceAll("U", "") ?? "";
  if (!leading) return pattern;
  const rest = pattern.slice(leading[0].length);
  return kept ? `(?${[...new Set(kept)].join("")}:${rest})` : rest;
}

function withoutFlags(pattern: string): string {
  return pattern.replace(/\(\?[imsU]+\)/g, "").replace(/\(\?[imsU-]+:/g, "(?:");
}
