import type { Cluster } from "../api/generated/cluster.ts";

/** Label selector as query text; `undefined` when it selects nothing at all. */
export function formatSelector(
  selector: NonNullable<Cluster["spec"]["podSelectorRefs"]>[number]["selector"] | undefined,
): string | undefined {
  if (!selector) return undefined;
  const equal = Object.entries(selector.matchLabels ?? {}).map(([key, value]) => `${key}=${value}`);
  const others = (selector.matchExpressions ?? []).map(({ key, operator, values = [] }) => {
    switch (operator) {
      case "In":
        return `${key} in (${values.join(",")})`;
      case "NotIn":
        return `${key} notin (${values.join(",")})`;
      case "DoesNotExist":
        return `!${key}`;
      default:
        return key;
    }
  });
  return [...equal, ...others].join(",");
}
