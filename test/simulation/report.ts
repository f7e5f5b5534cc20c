import { healthyWithinMs } from "./scenario.ts";
import type { Finding, Sweep } from "./sweep.ts";

/** The figures of a sweep, as the program prints them. */
export function describeSweep({ from, seeds, acknowledged, longestMs }: Sweep): string {
  return `${seeds} seeds from ${from}: ${acknowledged} writes acknowledged, nothing went wrong; well again at most ${longestMs / 1_000} s after the last fault`;
}

export interface SimulationReport {
  /** One that broke no promise. */
  swept: Sweep;
  /** By what lies outside of the assumptions. */
  beyond: Readonly<Record<string, Finding | undefined>>;
  /** By the guard that was taken away. */
  caught: Readonly<Record<string, Finding | undefined>>;
}

/** The report as Markdown. */
export function renderSimulation({ swept, beyond, caught }: SimulationReport): string {
  const { from, seeds } = swept;
  return `# Simulated clusters

Written by \`npm run simulate -- --from ${from} --seeds ${seeds} --report\`. Each seed is a cluster of one to three instances whose managers and operator follow the plans of the product, over a model of PostgreSQL's replication, of the API server and of the lines
between them, under the faults that the seed draws. After every step it holds that no two servers acknowledge writes at once, that no acknowledged write is missing where replication is \`required\`, and that the cluster is well within
${healthyWithinMs / 1_000} s after the last fault. Any seed is shown step by step by \`npm run simulate -- --trace SEED\`.

${describeSweep(swept)}.

## What goes wrong

${table(
  ["fault", "clusters"],
  [...swept.clusters].map(([fault, count]) => [fault, String(count)]),
)}

## Outside of the assumptions
Asked for every promise there too, these break one, so that the assumptions are needed as they stand ([safety](../guide/safety.md)). Every sweep meets them too, and then only \`required\` replication promises something.

${findings("what is beyond", beyond)}

## With one guard less
Each guard of the plans is taken away in turn; a run that goes on well without it would not test it. \`npm run simulate -- --without "GUARD" --trace SEED\` shows how it comes.

${findings("what is taken away", caught)}
`;
}

function findings(head: string, list: Readonly<Record<string, Finding | undefined>>): string {
  const lines = Object.entries(list).map(([name, found]) => [
    name,
    found ? String(found.seed) : "**none**",
    found?.violation ?? "",
  ]);
  return table([head, "first seed", "what happens"], lines);
}

function table(head: readonly string[], lines: readonly (readonly string[])[]): string {
  return [head, head.map(() => "---"), ...lines].map((line) => `| ${line.join(" | ")} |`).join("\n");
}
