import type { Schema } from "../../src/schema/crd/structural-schema.ts";
import { deploymentStrategy, podSpec } from "./core/generated/kubernetes.ts";
import { boolean, enumOf, integer, object, required, string, stringList, stringMap, use } from "./parts/builders.ts";
import { ageColumn, column, defineKind } from "./parts/definition.ts";
import { notBoth } from "./parts/rules.ts";
import { catalogReference, catalogRules, componentKey } from "./shared/catalog.ts";
import { podMonitor } from "./shared/monitoring.ts";
import { nameReference, ownCluster } from "./shared/references.ts";
import { serviceAccountName, serviceTemplate, templateMetadata } from "./shared/templates.ts";

const pgbouncer = object(
  "How PgBouncer runs.",
  {
    authQuery: string("Query that looks up the password of a user, for users that PgBouncer does not know."),
    authQuerySecret: nameReference("Secret with the user that runs the password query."),
    clientCASecret: nameReference("Secret with the CA that client certificates are checked with."),
    clientTLSSecret: nameReference("Secret with the certificate shown to clients."),
    image: string("Image of PgBouncer; the operator's own choice by default."),
    imageCatalogRef: catalogReference(
      "Catalog that the image of PgBouncer is taken from.",
      { key: required(componentKey) },
      catalogRules("Only ImageCatalog and ClusterImageCatalog are supported", "apiGroup must be postgresql.cnpg.io"),
    ),
    parameters: stringMap("Settings of PgBouncer, by name."),
    paused: boolean("Hold back queries: existing connections wait, new ones too.", { default: false }),
    pg_hba: stringList("Lines put into PgBouncer's hba file."),
    poolMode: enumOf("When a server connection goes back to the pool.", ["session", "transaction"], {
      default: "session",
    }),
    serverCASecret: nameReference("Secret with the CA that PostgreSQL's certificate is checked with."),
    serverTLSSecret: nameReference("Secret with the certificate shown to PostgreSQL."),
  },
  { rules: [notBoth("image", "imageCatalogRef", "image and imageCatalogRef are mutually exclusive")] },
);

function secretVersion(description: string): Schema {
  return object(description, {
    name: string("Name of the Secret."),
    version: string("Resource version of the Secret."),
  });
}

/** CustomResourceDefinition of Pooler. */
export const pooler = defineKind({
  group: "postgresql.cnpg.io",
  kind: "Pooler",
  description: "A layer of PgBouncer pods in front of a cluster.",
  columns: [
    ageColumn,
    column("Cluster", ".spec.cluster.name"),
    column("Type", ".spec.type"),
    column("Phase", ".status.phase"),
  ],
  scale: { specReplicasPath: ".spec.instances", statusReplicasPath: ".status.instances" },
  spec: object("The pooler and the cluster that it serves.", {
    cluster: required(ownCluster),
    deploymentStrategy: use("How pods are replaced when the pooler changes.", deploymentStrategy),
    instances: integer("Pods to run.", { bits: 32, default: 1 }),
    monitoring: object("How Prometheus scrapes the pods.", podMonitor),
    pgbouncer: required(pgbouncer),
    serviceAccountName,
    serviceTemplate: serviceTemplate("What the Service of the pooler is to look like."),
    template: object("What the pods are to look like.", {
      metadata: templateMetadata,
      spec: use("Pod specification; the operator fills in the container named pgbouncer.", podSpec),
    }),
    type: enumOf("Service of the cluster that connections go to.", ["rw", "ro", "r"], { default: "rw" }),
  }),
  status: object("State of the pooler.", {
    error: string("Why the pooler does not work."),
    image: string("Image of PgBouncer that is used."),
    instances: integer("Pods that are running.", { bits: 32 }),
    phase: enumOf("State in one word.", ["active", "paused", "inactive", "failed"]),
    phaseReason: string("Why the pooler is in this state."),
    secrets: object("Secrets that the pods were started with.", {
      clientCA: secretVersion("CA that client certificates are checked with."),
      clientTLS: secretVersion("Certificate shown to clients."),
      pgBouncerSecrets: object("Secrets of PgBouncer itself.", {
        authQuery: secretVersion("User that runs the password query."),
      }),
      serverCA: secretVersion("CA that PostgreSQL's certificate is checked with."),
      serverTLS: secretVersion("Certificate shown to PostgreSQL."),
    }),
  }),
});
