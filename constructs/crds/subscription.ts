import { object, required, string, stringMap, use } from "./parts/builders.ts";
import { defineKind } from "./parts/definition.ts";
import { immutable } from "./parts/rules.ts";
import { appliedColumns, appliedStatus } from "./shared/declarative-status.ts";
import { managedCluster } from "./shared/references.ts";
import { reclaimPolicy } from "./shared/words.ts";

/** CustomResourceDefinition of Subscription. */
export const subscription = defineKind({
  group: "postgresql.cnpg.io",
  kind: "Subscription",
  description: "A subscription to a publication of another server, kept as the object says.",
  columns: appliedColumns,
  spec: object("The subscription, the database that it is in and where the data comes from.", {
    cluster: required(managedCluster),
    dbname: required(string("Database that receives the data.", { rules: [immutable("dbname is immutable")] })),
    externalClusterName: required(string("External cluster, as named in the Cluster, that publishes the data.")),
    name: required(string("Name of the subscription.", { rules: [immutable("name is immutable")] })),
    parameters: stringMap("Parameters of the subscription, as in its WITH clause."),
    publicationDBName: string("Database that publishes the data; the external cluster's own by default."),
    publicationName: required(string("Publication to subscribe to.")),
    subscriptionReclaimPolicy: use("What becomes of the subscription when this object is deleted.", reclaimPolicy),
  }),
  status: object("Whether the subscription is as wanted.", appliedStatus),
});
