// What PostgreSQL has no longer as a declared object made it. The original never looks again at what it has applied once; a
// status that says `applied` is then not true for as long as nobody edits the object.
import type { Database } from "../../api/generated/database.ts";

type Spec = Database["spec"];
type ListName = "schemas" | "extensions" | "fdws" | "servers";

/** A database as PostgreSQL has it. */
export interface DatabaseFacts {
  owner: string;
  allowConnections: boolean;
  connectionLimit: number;
  isTemplate: boolean;
  tablespace: string;
}

/** Something that lies in a database. */
export interface ContentFact {
  list: ListName;
  name: string;
  /** Of schemas and servers only. */
  owner?: string;
  /** Of extensions only. */
  version?: string;
  schema?: string;
}

const words: Readonly<Record<ListName, string>> = {
  schemas: "schema",
  extensions: "extension",
  fdws: "foreign data wrapper",
  servers: "foreign server",
};

/** Whether a database's contents are declared, so that it takes a session there to see them. */
export function hasContents(spec: Spec): boolean {
  return [spec.schemas, spec.extensions, spec.fdws, spec.servers].some((list) => list?.length);
}

/** What is not as declared, in words; `facts` is absent when the database is. What is not declared does not count. */
export function findDatabaseDrift(spec: Spec, facts: DatabaseFacts | undefined): string[] {
  const what = `database ${JSON.stringify(spec.name)}`;
  if (spec.ensure === "absent") return facts ? [`${what} is there`] : [];
  if (!facts) return [`${what} is gone`];
  const fields = ["owner", "allowConnections", "connectionLimit", "isTemplate", "tablespace"] as const;
  return fields
    .filter((field) => spec[field] !== undefined && spec[field] !== "" && spec[field] !== facts[field])
    .map((field) => `${field} of ${what} is ${JSON.stringify(facts[field])}`);
}

/** The same for what lies in the database. */
export function findContentDrift(spec: Spec, facts: readonly ContentFact[]): string[] {
  return (Object.keys(words) as ListName[]).flatMap((list) =>
    (spec[list] ?? []).flatMap((item) => {
      const what = `${words[list]} ${JSON.stringify(item.name)}`;
      const fact = facts.find((it) => it.list === list && it.name === item.name);
      if (item.ensure === "absent") return fact ? [`${what} is there`] : [];
      if (!fact) return [`${what} is gone`];
      return (["owner", "version", "schema"] as const)
        .filter((field) => field in item && fact[field] !== undefined)
        .map((field) => [field, (item as Partial<ContentFact>)[field], fact[field]] as const)
        .filter(([, wanted, actual]) => wanted && wanted !== actual)
        .map(([field, , actual]) => `${field} of ${what} is ${JSON.stringify(actual)}`);
    }),
  );
}
