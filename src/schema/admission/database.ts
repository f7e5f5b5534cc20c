import type { Database } from "../../api/generated/database.ts";
import { duplicate, type FieldIssue, invalid } from "./field-issue.ts";
import { when } from "./rule.ts";
import { isValidationDisabled, validationWarnings } from "./warnings.ts";

/** What is wrong with a Database. */
export function validateDatabase(database: Database): FieldIssue[] {
  if (isValidationDisabled(database)) return [];
  const { schemas, extensions, fdws = [], servers = [] } = database.spec;
  return [
    ...checkUnique("spec.schemas", schemas),
    ...checkUnique("spec.extensions", extensions),
    ...checkUnique("spec.fdws", fdws),
    ...checkUnique("spec.servers", servers),
    ...fdws.flatMap((fdw, i) => checkMembers(`spec.fdws[${i}]`, fdw)),
    ...servers.flatMap((server, i) => checkMembers(`spec.servers[${i}]`, server)),
    ...servers.flatMap((server, i) =>
      when(
        server.ensure !== "absent" && !fdws.some(({ name }) => name === server.fdw),
        invalid(`spec.servers[${i}].fdw`, server.fdw, "referenced fdw not defined in spec.fdws"),
      ),
    ),
  ];
}

/** Warnings about a Database. */
export function databaseWarnings(database: Database): string[] {
  return validationWarnings(database);
}

interface Members {
  options?: { name: string }[];
  usage?: { name: string }[];
}

function checkMembers(path: string, { options, usage }: Members): FieldIssue[] {
  return [...checkUnique(`${path}.options`, options), ...checkUnique(`${path}.usage`, usage)];
}

function checkUnique(path: string, list: readonly { name: string }[] | undefined): FieldIssue[] {
  const seen = new Set<string>();
  return (list ?? []).flatMap(({ name }, i) => {
    const repeated = seen.has(name);
    seen.add(name);
    return when(repeated, duplicate(`${path}[${i}].name`, name));
  });
}
