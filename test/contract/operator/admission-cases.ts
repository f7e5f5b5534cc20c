import { resources } from "../../../src/kube/resources.ts";
import type { KubeObject, ResourceType } from "../../../src/ports/kube-api.ts";

/** One kind with an object that is fine, and specs that are not, each with what the user has to read. */
export interface AdmissionCase {
  type: ResourceType<KubeObject>;
  good: object;
  bad: readonly { spec?: object; metadata?: object; says: readonly string[] }[];
}

const cluster = { name: "c" };
const catalogs: Omit<AdmissionCase, "type"> = {
  good: { images: [{ major: 17, image: "example.org/postgresql:17.2" }] },
  bad: [
    {
      spec: {
        images: [
          { major: 17, image: "example.org/postgresql:17.2" },
          { major: 17, image: "example.org/postgresql:17.3" },
        ],
      },
      says: ["spec.images", "Images must have unique major versions"],
    },
    { spec: { images: [] }, says: ["spec.images", "at least 1 items"] },
  ],
};

/** Every kind of the group but the one that only the operator writes. */
export const admissionCases: readonly AdmissionCase[] = [
  {
    type: resources.clusters as ResourceType<KubeObject>,
    good: { instances: 3, storage: { size: "1Gi" } },
    bad: [
      { spec: { storage: { size: "much" } }, says: ["spec.storage.size", "Size value isn't valid"] },
      { spec: { instances: 0 }, says: ["spec.instances", "greater than or equal to 1"] },
      { metadata: { name: "a".repeat(51) }, says: ["metadata.name", "maximum length of a cluster name is 50"] },
      { spec: { instancse: 3 }, says: ['unknown field "spec.instancse"'] },
      {
        spec: { imageName: "example.org/postgresql:latest", maxSyncReplicas: 3 },
        says: ["spec.imageName", "Can't use 'latest'", "spec.maxSyncReplicas", "lower than the number of instances"],
      },
    ],
  },
  {
    type: resources.backups as ResourceType<KubeObject>,
    good: { cluster, method: "plugin", pluginConfiguration: { name: "example.org" } },
    bad: [
      {
        spec: { method: "volumeSnapshot", pluginConfiguration: undefined },
        says: ["spec.method", "Cannot use volumeSnapshot backup method due to missing VolumeSnapshot CRD"],
      },
      {
        spec: { pluginConfiguration: undefined },
        says: ["spec.pluginConfiguration", "cannot be empty when the backup method is plugin"],
      },
      {
        spec: { method: "barmanObjectStore", pluginConfiguration: undefined, online: true },
        says: ["spec.online", "Online parameter can be specified only if the backup method is volumeSnapshot"],
      },
      {
        metadata: { annotations: { "cnpg.io/volumeSnapshotDeadline": "soon" } },
        says: ["metadata.annotations.cnpg.io/volumeSnapshotDeadline", "must be an integer"],
      },
    ],
  },
  {
    type: resources.scheduledBackups as ResourceType<KubeObject>,
    good: { cluster, schedule: "0 0 0 * * *" },
    bad: [
      { spec: { schedule: "every day" }, says: ["spec.schedule"] },
      {
        spec: { online: false },
        says: ["spec.online", "Online parameter can be specified only if the method is volumeSnapshot"],
      },
    ],
  },
  {
    type: resources.databases as ResourceType<KubeObject>,
    good: { cluster, name: "app", owner: "app", schemas: [{ name: "one" }] },
    bad: [
      { spec: { schemas: [{ name: "one" }, { name: "one" }] }, says: ["spec.schemas[1].name", "Duplicate value"] },
      {
        spec: { servers: [{ name: "far", fdw: "none" }] },
        says: ["spec.servers[0].fdw", "referenced fdw not defined in spec.fdws"],
      },
      { spec: { name: "template1" }, says: ["spec.name", "the name template1 is reserved"] },
      { spec: { owner: undefined }, says: ["spec.owner", "Required value"] },
    ],
  },
  {
    type: resources.poolers as ResourceType<KubeObject>,
    good: { cluster, pgbouncer: { poolMode: "session" } },
    bad: [
      {
        spec: { pgbouncer: { parameters: { listen_port: "1" } } },
        says: ["parameters", "Invalid or reserved parameter"],
      },
      {
        spec: { pgbouncer: { authQuery: "SELECT 1" } },
        says: ["spec.pgbouncer.authQuerySecret.name", "must specify an existing auth query secret"],
      },
      {
        metadata: { name: "c" },
        says: ["metadata.name", "the pooler resource cannot have the same name of a cluster"],
      },
    ],
  },
  {
    type: resources.databaseRoles as ResourceType<KubeObject>,
    good: { cluster, name: "writer" },
    bad: [
      { spec: { name: "pg_writer" }, says: ["spec", "role names starting with pg_ are reserved by PostgreSQL"] },
      {
        spec: { disablePassword: true, passwordSecret: { name: "s" } },
        says: ["spec", "passwordSecret and disablePassword are mutually exclusive"],
      },
    ],
  },
  {
    type: resources.publications as ResourceType<KubeObject>,
    good: { cluster, dbname: "app", name: "all", target: { allTables: true } },
    bad: [
      {
        spec: { target: { allTables: true, objects: [{ tablesInSchema: "public" }] } },
        says: ["spec.target", "allTables and objects are mutually exclusive"],
      },
    ],
  },
  {
    type: resources.subscriptions as ResourceType<KubeObject>,
    good: { cluster, dbname: "app", name: "all", externalClusterName: "origin", publicationName: "all" },
    bad: [{ spec: { publicationName: undefined }, says: ["spec.publicationName", "Required value"] }],
  },
  { type: resources.imageCatalogs as ResourceType<KubeObject>, ...catalogs },
  { type: resources.clusterImageCatalogs as ResourceType<KubeObject>, ...catalogs },
];
