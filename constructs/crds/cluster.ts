import { placement } from "./cluster/affinity.ts";
import { backup } from "./cluster/backup.ts";
import { bootstrap } from "./cluster/bootstrap.ts";
import { certificates } from "./cluster/certificates.ts";
import { connections } from "./cluster/external-clusters.ts";
import { image } from "./cluster/image.ts";
import { managed } from "./cluster/managed.ts";
import { monitoring } from "./cluster/monitoring.ts";
import { operation } from "./cluster/operation.ts";
import { pods } from "./cluster/pods.ts";
import { postgresql } from "./cluster/postgresql.ts";
import { probes } from "./cluster/probes.ts";
import { replication } from "./cluster/replication.ts";
import { status } from "./cluster/status.ts";
import { storage } from "./cluster/storage.ts";
import { object } from "./parts/builders.ts";
import { ageColumn, column, defineKind, type PrinterColumn } from "./parts/definition.ts";
import { notBoth } from "./parts/rules.ts";

const columns: readonly PrinterColumn[] = [
  ageColumn,
  { ...column("Instances", ".status.instances", "integer"), description: "Instances that there are" },
  { ...column("Ready", ".status.readyInstances", "integer"), description: "Instances that are ready" },
  { ...column("Status", ".status.phase"), description: "State of the cluster" },
  { ...column("Primary", ".status.currentPrimary"), description: "Instance that is primary" },
];

/** CustomResourceDefinition of Cluster. */
export const cluster = defineKind({
  group: "postgresql.cnpg.io",
  kind: "Cluster",
  description: "A PostgreSQL primary and its standbys.",
  columns,
  scale: {
    specReplicasPath: ".spec.instances",
    statusReplicasPath: ".status.instances",
    labelSelectorPath: ".status.selector",
  },
  spec: object(
    "What the cluster is to be like.",
    {
      ...connections,
      ...image,
      ...operation,
      ...placement,
      ...pods,
      ...replication,
      ...storage,
      backup,
      bootstrap,
      certificates,
      managed,
      monitoring,
      postgresql,
      probes,
    },
    { rules: [notBoth("imageCatalogRef", "imageName", "imageName and imageCatalogRef are mutually exclusive")] },
  ),
  status,
});
