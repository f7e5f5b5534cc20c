import type { Schema } from "../../src/schema/crd/structural-schema.ts";
import { boolean, enumOf, type Fields, integer, listOf, object, required, string, use } from "./parts/builders.ts";
import { defineKind } from "./parts/definition.ts";
import { immutable, rule } from "./parts/rules.ts";
import { appliedColumns, appliedStatus } from "./shared/declarative-status.ts";
import { localeRules } from "./shared/locale-rules.ts";
import { managedCluster } from "./shared/references.ts";
import { ensure, reclaimPolicy } from "./shared/words.ts";

/** A setting that PostgreSQL takes only when it creates the database. */
function fixed(name: string, description: string): Record<string, Schema> {
  return { [name]: string(description, { rules: [immutable(`${name} is immutable`)] }) };
}

function nonEmpty(description: string, message: string): Schema {
  return string(description, { rules: [rule(message, "self != ''")] });
}

const options = listOf(
  "Options, by name.",
  object("One option.", {
    ensure,
    name: required(string("Name of the option.")),
    value: required(string("Value of the option.")),
  }),
);

const usage = listOf(
  "Roles that get or lose the USAGE privilege.",
  object("The privilege of one role.", {
    name: required(nonEmpty("Name of the role.", "name is required")),
    type: enumOf("Whether the privilege is granted or revoked.", ["grant", "revoke"], { default: "grant" }),
  }),
);

const contents: Fields = {
  extensions: listOf(
    "Extensions of the database.",
    object("An extension.", {
      ensure,
      name: required(string("Name of the extension.")),
      schema: string("Schema that the extension's objects are in."),
      version: string("Version to install or to update to; the newest by default."),
    }),
  ),
  fdws: listOf(
    "Foreign data wrappers of the database.",
    object("A foreign data wrapper.", {
      ensure,
      handler: string("Handler function; the extension's own by default, none for a dash."),
      name: required(string("Name of the wrapper.")),
      options,
      owner: string("Role that owns the wrapper; it has to be a superuser."),
      usage,
      validator: string("Validator function; the extension's own by default, none for a dash."),
    }),
  ),
  schemas: listOf(
    "Schemas of the database.",
    object("A schema.", {
      ensure,
      name: required(string("Name of the schema.")),
      owner: string("Role that owns the schema."),
    }),
  ),
  servers: listOf(
    "Foreign servers of the database.",
    object("A foreign server.", {
      ensure,
      fdw: required(nonEmpty("Foreign data wrapper that the server uses.", "fdw is required")),
      name: required(string("Name of the server.")),
      options,
      usage,
    }),
  ),
};

const applied = (description: string): Schema =>
  listOf(
    description,
    object("State of one of them.", {
      applied: required(boolean("Whether it is as wanted.")),
      message: string("What stood in the way of the last attempt."),
      name: required(string("Its name.")),
    }),
  );

/** CustomResourceDefinition of Database. */
export const database = defineKind({
  group: "postgresql.cnpg.io",
  kind: "Database",
  description: "A database of PostgreSQL and what is to be in it, kept as the object says.",
  columns: appliedColumns,
  spec: object(
    "The database and the cluster that it is in.",
    {
      ...contents,
      ...fixed("builtinLocale", "Locale of the builtin provider."),
      ...fixed("collationVersion", "Version that is recorded for the collation."),
      ...fixed("encoding", "Character set encoding."),
      ...fixed("icuLocale", "Locale of the icu provider."),
      ...fixed("icuRules", "Collation rules added to those of the ICU locale."),
      ...fixed("locale", "Collation and character class in one."),
      ...fixed("localeCType", "Character class (LC_CTYPE)."),
      ...fixed("localeCollate", "Collation (LC_COLLATE)."),
      ...fixed("localeProvider", "Locale provider: builtin, icu or libc."),
      ...fixed("template", "Database that the new one is a copy of."),
      allowConnections: boolean("Whether anybody may connect."),
      cluster: required(managedCluster),
      connectionLimit: integer("Concurrent connections allowed; -1 for no limit."),
      databaseReclaimPolicy: use("What becomes of the database when this object is deleted.", reclaimPolicy),
      ensure,
      isTemplate: boolean("Whether every role that may create databases may copy this one."),
      name: required(
        string("Name of the database.", {
          rules: [immutable("name is immutable"), ...["postgres", "template0", "template1"].map(reserved)],
        }),
      ),
      owner: required(string("Role that owns the database.")),
      tablespace: string("Default tablespace of the database."),
    },
    { rules: localeRules },
  ),
  status: object("Whether the database is as wanted.", {
    ...appliedStatus,
    extensions: applied("State of the extensions."),
    fdws: applied("State of the foreign data wrappers."),
    schemas: applied("State of the schemas."),
    servers: applied("State of the foreign servers."),
  }),
});

function reserved(name: string): ReturnType<typeof rule> {
  return rule(`the name ${name} is reserved`, `self != '${name}'`);
}
