import type { KubeObject } from "../ports/kube-api.ts";

/** Whether labels satisfy a label selector in its text form (`a=b,c!=d,e in (f,g),h notin (i),j,!k`). */
export function matchesLabelSelector(
  selector: string | undefined,
  labels: Record<string, string> | undefined,
): boolean {
  if (!selector?.trim()) return true;
  return splitTerms(selector).every((term) => matchesLabelTerm(term, labels ?? {}));
}

/** Whether an object satisfies a field selector (`metadata.name=x,status.phase!=Running`). */
export function matchesFieldSelector(selector: string | undefined, object: KubeObject): boolean {
  if (!selector?.trim()) return true;
  return selector.split(",").every((term) => {
    const match = /^\s*([^=!\s]+)\s*(!=|==|=)\s*(.*?)\s*$/.exec(term);
    if (!match) throw new Error(`field selector term "${term}" cannot be read`);
    const [, path = "", operator, value = ""] = match;
    const equal = readPath(object, path) === value;
    return operator === "!=" ? !equal : equal;
  });
}

/** Splits at commas outside of parentheses. */
function splitTerms(selector: string): string[] {
  return selector
    .split(/,(?![^(]*\))/)
    .map((term) => term.trim())
    .filter(Boolean);
}

function matchesLabelTerm(term: string, labels: Record<string, string>): boolean {
  const set = /^(\S+)\s+(in|notin)\s*\(([^)]*)\)$/.exec(term);
  if (set) {
    const [, key = "", operator, list = ""] = set;
    const value = labels[key];
    const contained = value !== undefined && list.split(",").some((item) => item.trim() === value);
    return operator === "in" ? contained : !contained;
  }
  const equality = /^([^=!\s]+)\s*(!=|==|=)\s*(\S*)$/.exec(term);
  if (equality) {
    const [, key = "", operator, value] = equality;
    return operator === "!=" ? labels[key] !== value : labels[key] === value;
  }
  const existence = /^(!?)\s*([^=!\s()]+)$/.exec(term);
  if (!existence) throw new Error(`label selector term "${term}" cannot be read`);
  const [, negation, key = ""] = existence;
  return negation ? !(key in labels) : key in labels;
}

function readPath(object: unknown, path: string): string {
  let current: unknown = object;
  for (const part of path.split(".")) current = (current as Record<string, unknown> | undefined)?.[part];
  return current === undefined || current === null ? "" : String(current);
}
