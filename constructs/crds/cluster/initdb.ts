import type { Schema } from "../../../src/schema/crd/structural-schema.ts";
import {
  boolean,
  enumOf,
  type Fields,
  integer,
  listOf,
  object,
  required,
  string,
  stringList,
} from "../parts/builders.ts";
import { localeRules } from "../shared/locale-rules.ts";
import { configMapKey, nameReference, secretKey } from "../shared/references.ts";

const logicalImport = object("Databases to import from another server by pg_dump and pg_restore.", {
  databases: required(stringList("Databases to import; a star stands for all of them.")),
  pgDumpExtraOptions: stringList("More options for pg_dump."),
  pgRestoreDataOptions: stringList("More options for the pg_restore run that loads data."),
  pgRestoreExtraOptions: stringList("More options for every pg_restore run."),
  pgRestorePostdataOptions: stringList("More options for the pg_restore run that builds indexes and constraints."),
  pgRestorePredataOptions: stringList("More options for the pg_restore run that makes the schema."),
  postImportApplicationSQL: stringList("Statements run in the application's database after the import."),
  roles: stringList("Roles to import; a star stands for all of them."),
  schemaOnly: boolean("Import the schema without data."),
  source: required(
    object("Server to import from.", {
      externalCluster: required(string("External cluster, as named in this Cluster.")),
    }),
  ),
  type: required(
    enumOf("Import one database (microservice) or several with roles (monolith).", ["microservice", "monolith"]),
  ),
});

function sqlReferences(description: string): Schema {
  return object(description, {
    configMapRefs: listOf("Keys of ConfigMaps, run after those of Secrets.", configMapKey("A key with statements.")),
    secretRefs: listOf("Keys of Secrets, run first.", secretKey("A key with statements.")),
  });
}

const statements: Fields = {
  postInitApplicationSQL: stringList("Statements run as superuser in the application's database."),
  postInitApplicationSQLRefs: sqlReferences("Statements from other objects, run in the application's database."),
  postInitSQL: stringList("Statements run as superuser in database postgres."),
  postInitSQLRefs: sqlReferences("Statements from other objects, run in database postgres."),
  postInitTemplateSQL: stringList("Statements run as superuser in database template1."),
  postInitTemplateSQLRefs: sqlReferences("Statements from other objects, run in database template1."),
};

/** `spec.bootstrap.initdb`: a new, empty server. */
export const initdb = object(
  "Make a new, empty server.",
  {
    ...statements,
    builtinLocale: string("Locale of the builtin provider."),
    dataChecksums: boolean("Whether pages carry checksums; the default of initdb otherwise."),
    database: string("Database of the application, made after the server."),
    encoding: string("Character set encoding; UTF8 by default."),
    icuLocale: string("Locale of the icu provider."),
    icuRules: string("Collation rules added to those of the ICU locale."),
    import: logicalImport,
    locale: string("Collation and character class in one."),
    localeCType: string("Character class (LC_CTYPE); C by default."),
    localeCollate: string("Collation (LC_COLLATE); C by default."),
    localeProvider: string("Locale provider: builtin, icu or libc."),
    options: stringList("Options for initdb as they are; superseded by the fields here."),
    owner: string("Role that owns the application's database; named like it by default."),
    secret: nameReference("Secret with the owner's user name and password; made by the operator by default."),
    walSegmentSize: integer("Size of a WAL segment in MB, a power of two; 16 by default.", {
      minimum: 1,
      maximum: 1024,
    }),
  },
  { rules: localeRules },
);
