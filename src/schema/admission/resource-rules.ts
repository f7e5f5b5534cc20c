import type { Cluster } from "../../api/generated/cluster.ts";
import { compareQuantities, parseQuantity } from "../../api/quantity.ts";
import { parseMemory } from "../../postgres/values.ts";
import { type FieldIssue, forbidden, invalid } from "./field-issue.ts";
import { type ClusterRule, when } from "./rule.ts";

type Amounts = Record<string, string | number>;

/** CPU, memory, disk and huge pages of instances. */
export const checkResources: ClusterRule = ({ spec }) => {
  const requests: Amounts = spec.resources?.requests ?? {};
  const limits: Amounts = spec.resources?.limits ?? {};
  return [
    ...checkLimit(requests, limits, "cpu", "cpu", "CPU request is greater than the limit"),
    ...checkLimit(requests, limits, "memory", "memory", "Memory request is greater than the limit"),
    ...checkLimit(
      requests,
      limits,
      "ephemeral-storage",
      "storage",
      "Ephemeral storage request is greater than the limit",
    ),
    ...checkHugePages(requests, limits),
    ...checkMemoryForBuffers(spec, requests, limits),
  ];
};

function checkLimit(
  requests: Amounts,
  limits: Amounts,
  resource: string,
  field: string,
  message: string,
): FieldIssue[] {
  const [request, limit] = [requests[resource], limits[resource]];
  if (request === undefined || limit === undefined || compareQuantities(request, limit) !== 1) return [];
  return [invalid(`spec.resources.requests.${field}`, request, message)];
}

function checkHugePages(requests: Amounts, limits: Amounts): FieldIssue[] {
  const names = [...new Set([...Object.keys(requests), ...Object.keys(limits)])].filter(isHugePages).sort();
  const hasMain = [requests, limits].some((amounts) => "cpu" in amounts || "memory" in amounts);
  return [
    ...names.flatMap((name) => {
      const [request, limit] = [requests[name], limits[name]];
      // A limit alone is the request, too.
      const differs = request !== undefined && (limit === undefined || compareQuantities(request, limit) !== 0);
      return when(
        differs,
        invalid(`spec.resources.requests.${name}`, request, "HugePages requests must equal the limits"),
      );
    }),
    ...when(names.length > 0 && !hasMain, forbidden("spec.resources", "HugePages require cpu or memory")),
  ];
}

function checkMemoryForBuffers(spec: Cluster["spec"], requests: Amounts, limits: Amounts): FieldIssue[] {
  const buffers = bufferBytes(spec.postgresql?.parameters?.["shared_buffers"] ?? "");
  const memory = requests["memory"];
  if (buffers === undefined || memory === undefined) return [];
  // Quantities count in billionths.
  const needed = buffers * 1_000_000_000n;
  const holds = (amount: string | number | undefined) =>
    amount !== undefined && (parseQuantity(amount) ?? 0n) >= needed;
  const inHugePages = Object.entries({ ...limits, ...requests }).some(
    ([name, amount]) => isHugePages(name) && holds(amount),
  );
  return when(
    !holds(memory) && !inHugePages,
    invalid("spec.resources.requests", memory, "Memory request is lower than PostgreSQL `shared_buffers` value"),
  );
}

/** Without a unit PostgreSQL counts pages of 8 kB. */
function bufferBytes(text: string): bigint | undefined {
  return /^\s*\d+\s*$/.test(text) ? BigInt(text.trim()) * 8192n : parseMemory(text);
}

function isHugePages(name: string): boolean {
  return name.startsWith("hugepages-");
}
