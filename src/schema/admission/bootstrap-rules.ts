import type { Cluster } from "../../api/generated/cluster.ts";
import { type FieldIssue, forbidden, invalid } from "./field-issue.ts";
import { type ClusterRule, when } from "./rule.ts";

type Initdb = NonNullable<NonNullable<Cluster["spec"]["bootstrap"]>["initdb"]>;
type Import = NonNullable<Initdb["import"]>;
type SqlRefs = NonNullable<Initdb["postInitSQLRefs"]>;

/** One bootstrap method, and what initdb and imports ask for. */
export const checkBootstrap: ClusterRule = (cluster) => {
  const bootstrap = cluster.spec.bootstrap ?? {};
  const methods = [bootstrap.initdb, bootstrap.recovery, bootstrap.pg_basebackup].filter(Boolean);
  return [
    ...when(methods.length > 1, forbidden("spec.bootstrap", "Only one bootstrap method can be specified at a time")),
    ...checkApplication("initdb", bootstrap.initdb),
    ...checkApplication("recovery", bootstrap.recovery),
    ...checkApplication("pg_basebackup", bootstrap.pg_basebackup),
    ...(bootstrap.initdb ? checkInitdb(cluster, bootstrap.initdb) : []),
  ];
};

function checkApplication(
  method: "initdb" | "recovery" | "pg_basebackup",
  section: { database?: string; owner?: string } | undefined,
): FieldIssue[] {
  const { database = "", owner = "" } = section ?? {};
  const path = `spec.bootstrap.${method}`;
  return [
    ...when(
      database !== "" && owner === "",
      invalid(`${path}.owner`, owner, "You need to specify the database owner user"),
    ),
    ...when(
      database === "" && owner !== "",
      invalid(`${path}.database`, database, "You need to specify the database name"),
    ),
  ];
}

function checkInitdb(cluster: Cluster, initdb: Initdb): FieldIssue[] {
  const path = "spec.bootstrap.initdb";
  const size = initdb.walSegmentSize ?? 0;
  return [
    ...when(
      size !== 0 && (size < 0 || (size & (size - 1)) !== 0),
      invalid(`${path}.walSegmentSize`, size, "WAL segment size must be a power of 2"),
    ),
    ...checkSqlRefs(`${path}.postInitApplicationSQLRefs`, initdb.postInitApplicationSQLRefs),
    ...checkSqlRefs(`${path}.postInitTemplateSQLRefs`, initdb.postInitTemplateSQLRefs),
    ...checkSqlRefs(`${path}.postInitSQLRefs`, initdb.postInitSQLRefs),
    ...(initdb.import ? checkImport(cluster, initdb.import) : []),
  ];
}

function checkSqlRefs(path: string, refs: SqlRefs | undefined): FieldIssue[] {
  const groups = { secretRefs: refs?.secretRefs, configMapRefs: refs?.configMapRefs };
  return Object.entries(groups).flatMap(([group, entries]) =>
    (entries ?? []).flatMap((entry) =>
      when(!entry.name || !entry.key, invalid(`${path}.${group}`, entry, "key and name must be specified")),
    ),
  );
}

function checkImport(cluster: Cluster, section: Import): FieldIssue[] {
  const path = "spec.bootstrap.initdb.import";
  const source = section.source?.externalCluster;
  const known = (cluster.spec.externalClusters ?? []).some(({ name }) => name === source);
  const issues = when(
    !known,
    invalid(`${path}.source.externalCluster`, source ?? "", `External cluster ${source ?? ""} not found`),
  );
  switch (section.type) {
    case "microservice":
      return [...issues, ...checkMicroservice(path, section)];
    case "monolith":
      return [...issues, ...checkMonolith(path, section)];
    default:
      return [...issues, invalid(`${path}.type`, section.type, "Unrecognized import type")];
  }
}

function checkMicroservice(path: string, { databases, roles = [] }: Import): FieldIssue[] {
  return [
    ...when(
      databases.length !== 1,
      invalid(
        `${path}.databases`,
        databases,
        "You need to specify a single database for the `microservice` import type",
      ),
    ),
    ...when(
      roles.length > 0,
      invalid(`${path}.roles`, roles, "You cannot specify roles to import for the `microservice` import type"),
    ),
    ...when(
      databases.length === 1 && Boolean(databases[0]?.includes("*")),
      invalid(
        `${path}.databases.0`,
        databases[0],
        "You cannot specify any wildcard for the `microservice` import type",
      ),
    ),
  ];
}

function checkMonolith(path: string, { databases, roles = [], postImportApplicationSQL = [] }: Import): FieldIssue[] {
  return [
    ...when(
      databases.length === 0,
      invalid(`${path}.databases`, databases, "You need to specify at least a database for the `monolith` import type"),
    ),
    ...when(
      databases.length > 1 && databases.includes("*"),
      invalid(`${path}.databases`, databases, "Wildcard import cannot be used along other database names"),
    ),
    ...when(
      roles.length > 1 && roles.includes("*"),
      invalid(`${path}.roles`, roles, "Wildcard import cannot be used along other role names"),
    ),
    ...when(
      postImportApplicationSQL.length > 0,
      invalid(
        `${path}.postImportApplicationSQL`,
        postImportApplicationSQL,
        "postImportApplicationSQL is not allowed for the `monolith` import type",
      ),
    ),
  ];
}
