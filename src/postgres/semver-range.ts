/** A version of three numbers. */
export type Version = readonly [major: number, minor: number, patch: number];

type Check = (version: Version) => boolean;

/**
 * Compiles a version range as monitoring queries give it in `runonserver`: comparisons separated by spaces must all hold,
 * `||` separates alternatives, `x` stands for any number. `undefined` when the text is not a range.
 */
export function compileVersionRange(text: string): Check | undefined {
  const alternatives: Check[][] = [];
  for (const part of text.split("||")) {
    const terms = part
      .replace(/([<>=!]+)\s+/g, "$1")
      .trim()
      .split(/\s+/);
    if (terms.length === 0 || terms[0] === "") return undefined;
    const checks: Check[] = [];
    for (const term of terms) {
      const check = compileTerm(term);
      if (!check) return undefined;
      checks.push(check);
    }
    alternatives.push(checks);
  }
  return (version) => alternatives.some((checks) => checks.every((check) => check(version)));
}

/** The version that ranges are tested against: PostgreSQL 17.4 counts as 17.0.4. */
export function serverVersionOf(serverVersionNumber: number): Version {
  return [Math.floor(serverVersionNumber / 10_000), 0, serverVersionNumber % 10_000];
}

function compileTerm(term: string): Check | undefined {
  const match = /^(==|=|!=|!|>=|<=|>|<)?v?(\d+|[xX*])(?:\.(\d+|[xX*]))?(?:\.(\d+|[xX*]))?$/.exec(term);
  if (!match) return undefined;
  const operator = match[1] ?? "=";
  const parts = [match[2], match[3], match[4]];
  // Only a wildcard may stand for missing numbers: "1.2" alone is an error in the original's syntax.
  const wildcard = parts.findIndex((part) => part !== undefined && /[xX*]/.test(part));
  if (wildcard === -1 && parts.includes(undefined)) return undefined;
  const numbers = parts.map((part) => (part !== undefined && /^\d+$/.test(part) ? Number(part) : 0));
  const low: Version = [numbers[0] ?? 0, numbers[1] ?? 0, numbers[2] ?? 0];
  const high = wildcard === -1 ? undefined : nextAfterWildcard(low, wildcard);
  return compileOperator(operator, low, high);
}

/** First version above everything a wildcard covers. */
function nextAfterWildcard(low: Version, wildcard: number): Version {
  if (wildcard === 0) return [Number.POSITIVE_INFINITY, 0, 0];
  return wildcard === 1 ? [low[0] + 1, 0, 0] : [low[0], low[1] + 1, 0];
}

function compileOperator(operator: string, low: Version, high: Version | undefined): Check {
  const inside: Check = (version) =>
    high ? compare(version, low) >= 0 && compare(version, high) < 0 : compare(version, low) === 0;
  switch (operator) {
    case ">":
      return (version) => (high ? compare(version, high) >= 0 : compare(version, low) > 0);
    case ">=":
      return (version) => compare(version, low) >= 0;
    case "<":
      return (version) => compare(version, low) < 0;
    case "<=":
      return (version) => (high ? compare(version, high) < 0 : compare(version, low) <= 0);
    case "!":
    case "!=":
      return (version) => !inside(version);
    default:
      return inside;
  }
}

function compare(left: Version, right: Version): number {
  for (const index of [0, 1, 2] as const) {
    if (left[index] !== right[index]) return left[index] < right[index] ? -1 : 1;
  }
  return 0;
}
