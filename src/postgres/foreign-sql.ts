// Statements for foreign data wrappers and foreign servers (reference: declarative objects §1.3).
import type { Database } from "../api/generated/database.ts";
import { quoteIdentifier, quoteLiteral } from "./identifiers.ts";

/** A foreign data wrapper as a Database wants it. */
export type WantedWrapper = NonNullable<Database["spec"]["fdws"]>[number];

/** A foreign server as a Database wants it. */
export type WantedServer = NonNullable<Database["spec"]["servers"]>[number];

type Option = NonNullable<WantedWrapper["options"]>[number];
type Usage = NonNullable<WantedWrapper["usage"]>[number];

/** A foreign data wrapper as PostgreSQL has it; a function that it lacks is a dash. */
export interface KnownWrapper {
  owner: string;
  handler: string;
  validator: string;
  options: Readonly<Record<string, string>>;
}

/** One statement, with the words that tell of its failure. */
export interface ForeignStep {
  sql: string;
  what?: string;
}

/** Makes a wrapper, and gives it to its owner. */
export function createWrapper(item: WantedWrapper): ForeignStep[] {
  const name = quoteIdentifier(item.name);
  const words = [
    `CREATE FOREIGN DATA WRAPPER ${name}`,
    ...(item.handler ? [functionClause("HANDLER", item.handler)] : []),
    ...(item.validator ? [functionClause("VALIDATOR", item.validator)] : []),
    ...optionsAtCreation(item.options),
  ];
  const owner = item.owner
    ? [{ sql: `ALTER FOREIGN DATA WRAPPER ${name} OWNER TO ${quoteIdentifier(item.owner)}` }]
    : [];
  return [{ sql: words.join(" ") }, ...owner, ...usageSteps("FOREIGN DATA WRAPPER", item.name, item.usage)];
}

/** Brings a wrapper that exists in line; what the definition leaves out stays as it is. */
export function alterWrapper(item: WantedWrapper, known: KnownWrapper): ForeignStep[] {
  const alter = `ALTER FOREIGN DATA WRAPPER ${quoteIdentifier(item.name)}`;
  const changes: string[] = [];
  if (item.handler && !isSameFunction(item.handler, known.handler)) {
    changes.push(functionClause("HANDLER", item.handler));
  }
  if (item.validator && !isSameFunction(item.validator, known.validator)) {
    changes.push(functionClause("VALIDATOR", item.validator));
  }
  if (item.owner && item.owner !== known.owner) changes.push(`OWNER TO ${quoteIdentifier(item.owner)}`);
  changes.push(...optionChanges(item.options, known.options));
  return [
    ...changes.map((change) => ({ sql: `${alter} ${change}` })),
    ...usageSteps("FOREIGN DATA WRAPPER", item.name, item.usage),
  ];
}

export function createServer(item: WantedServer): ForeignStep[] {
  const words = [
    `CREATE SERVER ${quoteIdentifier(item.name)} FOREIGN DATA WRAPPER ${quoteIdentifier(item.fdw)}`,
    ...optionsAtCreation(item.options),
  ];
  return [{ sql: words.join(" ") }, ...usageSteps("FOREIGN SERVER", item.name, item.usage)];
}

/** Brings a server that exists in line; PostgreSQL cannot give it another wrapper. */
export function alterServer(item: WantedServer, options: Readonly<Record<string, string>>): ForeignStep[] {
  const alter = `ALTER SERVER ${quoteIdentifier(item.name)}`;
  return [
    ...optionChanges(item.options, options).map((change) => ({ sql: `${alter} ${change}` })),
    ...usageSteps("FOREIGN SERVER", item.name, item.usage),
  ];
}

function functionClause(kind: "HANDLER" | "VALIDATOR", name: string): string {
  return name === "-" ? `NO ${kind}` : `${kind} ${name.split(".").map(quoteIdentifier).join(".")}`;
}

/** PostgreSQL leaves the schema out of a name that the search path finds. */
function isSameFunction(wanted: string, known: string): boolean {
  return wanted === known || wanted.split(".").at(-1) === known;
}

function optionsAtCreation(options: readonly Option[] = []): string[] {
  const wanted = options.filter(({ ensure }) => ensure !== "absent");
  if (wanted.length === 0) return [];
  return [`OPTIONS (${wanted.map(({ name, value }) => `${quoteIdentifier(name)} ${quoteLiteral(value)}`).join(", ")})`];
}

function optionChanges(options: readonly Option[] = [], known: Readonly<Record<string, string>>): string[] {
  const changes = options.flatMap(({ name, value, ensure }) => {
    const current = known[name];
    if (ensure === "absent") return current === undefined ? [] : [`DROP ${quoteIdentifier(name)}`];
    if (current === value) return [];
    return [`${current === undefined ? "ADD" : "SET"} ${quoteIdentifier(name)} ${quoteLiteral(value)}`];
  });
  return changes.length > 0 ? [`OPTIONS (${changes.join(", ")})`] : [];
}

function usageSteps(kind: string, name: string, usage: readonly Usage[] = []): ForeignStep[] {
  return usage.map((entry) => {
    const role = entry.name.toUpperCase() === "PUBLIC" ? "PUBLIC" : quoteIdentifier(entry.name);
    const object = `USAGE ON ${kind} ${quoteIdentifier(name)}`;
    return entry.type === "revoke"
      ? { sql: `REVOKE ${object} FROM ${role}`, what: `revoking ${object} from ${entry.name}` }
      : { sql: `GRANT ${object} TO ${role}`, what: `granting ${object} to ${entry.name}` };
  });
}
