const name = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;
const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** What is wrong with a label key; empty when nothing is. */
export function checkLabelName(key: string): string[] {
  const parts = key.split("/");
  if (parts.length > 2) return ["a qualified name has a name and at most one prefix, separated by '/'"];
  const prefix = parts.length === 2 ? parts[0] : undefined;
  const last = parts.at(-1) ?? "";
  const problems: string[] = [];
  if (prefix !== undefined && (prefix.length > 253 || !subdomain.test(prefix)))
    problems.push("prefix part must be a lower-case DNS subdomain of at most 253 characters");
  if (last === "") problems.push("name part must be non-empty");
  else if (last.length > 63) problems.push("name part must be no more than 63 bytes");
  else if (!name.test(last))
    problems.push(
      "name part must consist of letters, digits, '-', '_' or '.', and start and end with a letter or digit",
    );
  return problems;
}

/** What is wrong with a label value; empty when nothing is. */
export function checkLabelValue(value: string): string[] {
  if (value === "") return [];
  const problems: string[] = [];
  if (value.length > 63) problems.push("must be no more than 63 bytes");
  if (!name.test(value))
    problems.push("must be empty, or letters, digits, '-', '_' or '.', and start and end with a letter or digit");
  return problems;
}

interface Selector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values?: string[] }[];
}

/** What is wrong with a label selector; empty when nothing is. */
export function checkLabelSelector(selector: Selector): string[] {
  const pairs = Object.entries(selector.matchLabels ?? {});
  return [
    ...pairs.flatMap(([key, value]) => [...checkLabelName(key), ...checkLabelValue(value)]),
    ...(selector.matchExpressions ?? []).flatMap(checkExpression),
  ];
}

function checkExpression({
  key,
  operator,
  values = [],
}: {
  key: string;
  operator: string;
  values?: string[];
}): string[] {
  const problems = checkLabelName(key);
  switch (operator) {
    case "In":
    case "NotIn":
      if (values.length === 0) problems.push(`operator ${operator} needs values`);
      return [...problems, ...values.flatMap(checkLabelValue)];
    case "Exists":
    case "DoesNotExist":
      if (values.length > 0) problems.push(`operator ${operator} takes no values`);
      return problems;
    default:
      return [...problems, `"${operator}" is not a valid label selector operator`];
  }
}
