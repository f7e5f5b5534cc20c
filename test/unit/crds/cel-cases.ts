import type { CrdKind } from "../../../src/schema/crd/index.ts";
import { minimalSpecs } from "./minimal-specs.ts";

/** A spec, or a change of one, that breaks exactly one rule. */
export interface CelCase {
  readonly kind: CrdKind;
  /** Field that the error names. */
  readonly path: string;
  readonly message: string;
  readonly spec: object;
  /** The accepted spec before the change, for rules about changes. */
  readonly oldSpec?: object;
  /** The schema itself refuses the object too, so the API server may not come to the rule. */
  readonly alsoBySchema?: true;
}

const catalogs: readonly CelCase[] = (["ImageCatalog", "ClusterImageCatalog"] as const).flatMap((kind) => [
  bad(kind, "spec.images", "Images must have unique major versions", {
    images: [
      { major: 17, image: "a" },
      { major: 17, image: "b" },
    ],
  }),
  {
    ...bad(kind, "spec.componentImages", "Component image keys must be unique", {
      componentImages: [
        { key: "pgbouncer", image: "a" },
        { key: "pgbouncer", image: "b" },
      ],
    }),
    alsoBySchema: true as const,
  },
]);

const locales: readonly CelCase[] = [
  ["builtinLocale", "builtin"],
  ["icuLocale", "icu"],
  ["icuRules", "icu"],
].flatMap(([field = "", provider = ""]) => {
  const message = `${field} is only available when localeProvider is set to \`${provider}\``;
  const fields = { [field]: "C", localeProvider: "libc" };
  return [
    bad("Cluster", "spec.bootstrap.initdb", message, { bootstrap: { initdb: fields } }),
    bad("Database", "spec", message, fields),
  ];
});

const databaseFields: readonly CelCase[] = [
  ["collationVersion", "1", "2"],
  ["encoding", "UTF8", "LATIN1"],
  ["locale", "C", "de_DE"],
  ["localeCType", "C", "de_DE"],
  ["localeCollate", "C", "de_DE"],
  ["localeProvider", "libc", "icu"],
  ["template", "template0", "template1"],
].map(([field = "", before = "", after = ""]) => changed("Database", field, { [field]: before }, { [field]: after }));

const localeFields: readonly CelCase[] = [
  ["builtinLocale", "builtin"],
  ["icuLocale", "icu"],
  ["icuRules", "icu"],
].map(([field = "", localeProvider = ""]) =>
  changed("Database", field, { [field]: "C", localeProvider }, { [field]: "C.UTF-8", localeProvider }),
);

const clusterReferences: readonly CelCase[] = (
  ["Database", "DatabaseRole", "Pooler", "Publication", "ScheduledBackup", "Subscription"] as const
).map((kind) =>
  changed(kind, "cluster", {}, { cluster: { name: "other" } }, "cluster reference is immutable after creation"),
);

const names: readonly CelCase[] = [
  changed("Database", "name", {}, { name: "other" }),
  ...(["Publication", "Subscription"] as const).flatMap((kind) => [
    changed(kind, "name", {}, { name: "other" }),
    changed(kind, "dbname", {}, { dbname: "other" }),
  ]),
  ...(["Cluster", "Pooler"] as const).map((kind) =>
    changed(kind, "serviceAccountName", { serviceAccountName: "a" }, { serviceAccountName: "b" }),
  ),
  { ...changed("DatabaseRole", "name", {}, { name: "other" }), path: "spec" },
  { ...changed("Backup", "method", {}, { method: "plugin" }, "BackupSpec is immutable once set"), path: "spec" },
  {
    ...changed("Publication", "allTables", {}, { target: { allTables: false } }),
    path: "spec.target.allTables",
  },
];

const clusters: readonly CelCase[] = [
  bad("Cluster", "spec", "imageName and imageCatalogRef are mutually exclusive", {
    imageName: "pg:17",
    imageCatalogRef: { apiGroup: "postgresql.cnpg.io", kind: "ImageCatalog", name: "pg", major: 17 },
  }),
  bad("Cluster", "spec.imageCatalogRef", "Only image catalogs are supported", {
    imageCatalogRef: { apiGroup: "postgresql.cnpg.io", kind: "Cluster", name: "pg", major: 17 },
  }),
  bad("Cluster", "spec.imageCatalogRef", "Only image catalogs are supported", {
    imageCatalogRef: { apiGroup: "apps", kind: "ImageCatalog", name: "pg", major: 17 },
  }),
  bad(
    "Cluster",
    "spec.postgresql.synchronous",
    "dataDurability set to 'preferred' requires empty 'standbyNamesPre' and empty 'standbyNamesPost'",
    { postgresql: { synchronous: { method: "any", number: 1, dataDurability: "preferred", standbyNamesPre: ["a"] } } },
  ),
  bad(
    "Cluster",
    "spec.postgresql.synchronous.number",
    "The number of synchronous replicas should be greater than zero",
    { postgresql: { synchronous: { method: "any", number: 0 } } },
  ),
];

const databases: readonly CelCase[] = [
  ...["postgres", "template0", "template1"].map((name) =>
    bad("Database", "spec.name", `the name ${name} is reserved`, { name }),
  ),
  bad("Database", "spec.fdws[0].usage[0].name", "name is required", { fdws: [{ name: "f", usage: [{ name: "" }] }] }),
  bad("Database", "spec.servers[0].usage[0].name", "name is required", {
    servers: [{ name: "s", fdw: "f", usage: [{ name: "" }] }],
  }),
  bad("Database", "spec.servers[0].fdw", "fdw is required", { servers: [{ name: "s", fdw: "" }] }),
];

const roles: readonly CelCase[] = [
  ["the role name postgres is reserved", { name: "postgres" }],
  ["the role name streaming_replica is reserved", { name: "streaming_replica" }],
  ["role names starting with pg_ are reserved by PostgreSQL", { name: "pg_x" }],
  ["role names starting with cnpg_ are reserved by the operator", { name: "cnpg_x" }],
  ["role name must not be empty", { name: "" }],
  [
    "passwordSecret and disablePassword are mutually exclusive",
    { passwordSecret: { name: "s" }, disablePassword: true },
  ],
  ["clientCertificate requires the role to have login enabled", { clientCertificate: {}, login: false }],
  [
    "ensure: absent is not supported for DatabaseRole; delete the resource with databaseRoleReclaimPolicy: delete instead",
    { ensure: "absent" },
  ],
].map(([message, fields]) => bad("DatabaseRole", "spec", message as string, fields as object));

const stores: readonly CelCase[] = [
  bad("ObjectStore", "spec.configuration.serverName", "use the 'serverName' plugin parameter in the Cluster resource", {
    configuration: { destinationPath: "s3://bucket/", serverName: "pg" },
  }),
  bad(
    "ObjectStore",
    "spec.instanceSidecarConfiguration.additionalContainerArgs",
    "do not set --log-level in additionalContainerArgs; use spec.instanceSidecarConfiguration.logLevel",
    { instanceSidecarConfiguration: { additionalContainerArgs: ["--log-level=debug"] } },
  ),
];

const catalogOf = (fields: object): object => ({
  pgbouncer: {
    imageCatalogRef: {
      apiGroup: "postgresql.cnpg.io",
      kind: "ImageCatalog",
      name: "images",
      key: "pgbouncer",
      ...fields,
    },
  },
});

const poolers: readonly CelCase[] = [
  bad("Pooler", "spec.pgbouncer", "image and imageCatalogRef are mutually exclusive", {
    pgbouncer: { ...(catalogOf({}) as { pgbouncer: object }).pgbouncer, image: "pgbouncer:1" },
  }),
  bad(
    "Pooler",
    "spec.pgbouncer.imageCatalogRef",
    "Only ImageCatalog and ClusterImageCatalog are supported",
    catalogOf({ kind: "Cluster" }),
  ),
  bad("Pooler", "spec.pgbouncer.imageCatalogRef", "apiGroup must be postgresql.cnpg.io", catalogOf({ apiGroup: "" })),
];

const publications: readonly CelCase[] = [
  bad("Publication", "spec.target", "allTables and objects are mutually exclusive", {
    target: { allTables: true, objects: [{ tablesInSchema: "public" }] },
  }),
  bad("Publication", "spec.target.objects[0]", "tablesInSchema and table are mutually exclusive", {
    target: { objects: [{ tablesInSchema: "public", table: { name: "t" } }] },
  }),
  bad(
    "Publication",
    "spec.target.objects",
    "specifying a column list when the publication also publishes tablesInSchema is not supported",
    { target: { objects: [{ tablesInSchema: "public" }, { table: { name: "t", columns: ["c"] } }] } },
  ),
];

/** One case for every rule of every kind. */
export const celCases: readonly CelCase[] = [
  ...catalogs,
  ...clusterReferences,
  ...clusters,
  ...databaseFields,
  ...databases,
  ...localeFields,
  ...locales,
  ...names,
  ...poolers,
  ...publications,
  ...roles,
  ...stores,
];

function bad(kind: CrdKind, path: string, message: string, fields: object): CelCase {
  return { kind, path, message, spec: { ...minimalSpecs[kind], ...fields } };
}

function changed(
  kind: CrdKind,
  field: string,
  before: object,
  after: object,
  message = `${field} is immutable`,
): CelCase {
  const oldSpec = { ...minimalSpecs[kind], ...before };
  return { kind, path: `spec.${field}`, message, oldSpec, spec: { ...oldSpec, ...after } };
}
