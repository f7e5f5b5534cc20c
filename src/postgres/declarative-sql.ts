// Statements for Database, Publication and Subscription (reference: declarative objects §1.3, §1.5, §1.6).
import type { Database } from "../api/generated/database.ts";
import type { Publication } from "../api/generated/publication.ts";
import { quoteIdentifier, quoteLiteral } from "./identifiers.ts";

type DatabaseSpec = Database["spec"];

/** The statement that makes a database; texts are names in double quotes, which PostgreSQL takes for any option. */
export function createDatabase(spec: DatabaseSpec): string {
  const options: [string, string | number | boolean | undefined][] = [
    ["OWNER", spec.owner],
    ["TEMPLATE", spec.template],
    ["TABLESPACE", spec.tablespace],
    ["ALLOW_CONNECTIONS", spec.allowConnections],
    ["CONNECTION LIMIT", spec.connectionLimit],
    ["IS_TEMPLATE", spec.isTemplate],
    ["ENCODING", spec.encoding],
    ["LOCALE", spec.locale],
    ["LOCALE_PROVIDER", spec.localeProvider],
    ["LC_COLLATE", spec.localeCollate],
    ["LC_CTYPE", spec.localeCType],
    ["ICU_LOCALE", spec.icuLocale],
    ["ICU_RULES", spec.icuRules],
    ["BUILTIN_LOCALE", spec.builtinLocale],
    ["COLLATION_VERSION", spec.collationVersion],
  ];
  const words = options
    .filter(([, value]) => value !== undefined && value !== "")
    .map(([name, value]) => `${name} ${typeof value === "string" ? quoteIdentifier(value) : value}`);
  return [`CREATE DATABASE ${quoteIdentifier(spec.name)}`, ...words].join(" ");
}

/** Statements that bring a database that exists in line, each with the words that tell of its failure. */
export function alterDatabase(spec: DatabaseSpec): { sql: string; what: string }[] {
  const alter = `ALTER DATABASE ${quoteIdentifier(spec.name)}`;
  const what = `while altering database ${JSON.stringify(spec.name)}`;
  const { allowConnections, connectionLimit, isTemplate, owner, tablespace } = spec;
  const steps: { sql: string; what: string }[] = [];
  if (allowConnections !== undefined) {
    steps.push({
      sql: `${alter} WITH ALLOW_CONNECTIONS ${allowConnections}`,
      what: `${what} with allow_connections ${allowConnections}`,
    });
  }
  if (connectionLimit !== undefined) {
    steps.push({
      sql: `${alter} WITH CONNECTION LIMIT ${connectionLimit}`,
      what: `${what} with connection limit ${connectionLimit}`,
    });
  }
  if (isTemplate !== undefined) {
    steps.push({ sql: `${alter} WITH IS_TEMPLATE ${isTemplate}`, what: `${what} with is_template ${isTemplate}` });
  }
  if (owner) steps.push({ sql: `${alter} OWNER TO ${quoteIdentifier(owner)}`, what: `${what} owner to ${owner}` });
  if (tablespace) {
    steps.push({
      sql: `${alter} SET TABLESPACE ${quoteIdentifier(tablespace)}`,
      what: `${what} tablespace to ${tablespace}`,
    });
  }
  return steps;
}

/** `name = 'value'` pairs in the order of their names; empty for none. */
export function sortedParameters(parameters: Readonly<Record<string, string>> = {}): string {
  return Object.keys(parameters)
    .sort()
    .map((name) => `${quoteIdentifier(name)} = ${quoteLiteral(parameters[name] ?? "")}`)
    .join(", ");
}

type Target = Publication["spec"]["target"];

/** What a publication is about, as in `SET …` and `FOR …`; empty for all tables. */
export function publicationObjects(target: Target): string {
  let previous = "";
  return (target.objects ?? [])
    .map(({ table, tablesInSchema }) => {
      if (!table) {
        previous = "schema";
        return `TABLES IN SCHEMA ${quoteIdentifier(tablesInSchema ?? "")}`;
      }
      const keyword = previous === "table" ? "" : "TABLE ";
      previous = "table";
      const name = [table.schema, table.name].flatMap((part) => (part ? [quoteIdentifier(part)] : [])).join(".");
      const columns = table.columns?.length ? ` (${table.columns.map(quoteIdentifier).join(", ")})` : "";
      return `${keyword}${table.only ? "ONLY " : ""}${name}${columns}`;
    })
    .join(", ");
}

export function createPublication({ name, target, parameters }: Publication["spec"]): string {
  const objects = publicationObjects(target);
  const options = sortedParameters(parameters);
  const scope = target.allTables ? " FOR ALL TABLES" : objects ? ` FOR ${objects}` : "";
  return `CREATE PUBLICATION ${quoteIdentifier(name)}${scope}${options ? ` WITH (${options})` : ""}`;
}

export function alterPublication({ name, target, parameters }: Publication["spec"]): string[] {
  const objects = publicationObjects(target);
  const options = sortedParameters(parameters);
  const alter = `ALTER PUBLICATION ${quoteIdentifier(name)} SET`;
  return [...(objects ? [`${alter} ${objects}`] : []), ...(options ? [`${alter} (${options})`] : [])];
}
