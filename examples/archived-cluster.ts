// # A cluster that archives its WAL and takes a base backup every night
//
// It needs the barman-cloud plugin (dist/barman-cloud-plugin.k8s.yaml) beside the operator, and a Secret with the keys of an S3
// bucket, which is better not kept in Git:
//   kubectl create secret generic archive-keys --from-literal=ACCESS_KEY_ID=… --from-literal=ACCESS_SECRET_KEY=…
//
// How it works: `isWALArchiver` makes the plugin the archive of this cluster, so that every pod gets its sidecar. Backups older
// than two weeks go as soon as a younger one covers that time, and with them the WAL that only they need.
import { type App, Chart } from "cdk8s";
import { Cluster, ObjectStore, ScheduledBackup } from "../constructs/index.ts";

const plugin = "barman-cloud.cloudnative-pg.io";

export interface ArchivedClusterOptions {
  /** Folder in a bucket. @default s3://backups/ */
  readonly destinationPath?: string;
  /** For services other than AWS, for example `http://minio.default:9000`. */
  readonly endpointURL?: string;
  /** Secret with ACCESS_KEY_ID and ACCESS_SECRET_KEY. @default archive-keys */
  readonly keysSecret?: string;
}

/** The store, the cluster and its schedule. */
export function archivedCluster(app: App, options: ArchivedClusterOptions = {}): void {
  const chart = new Chart(app, "archived-cluster");
  const namespace = "default";
  const keys = options.keysSecret ?? "archive-keys";
  const archive = new ObjectStore(chart, "archive", {
    namespace,
    spec: {
      configuration: {
        destinationPath: options.destinationPath ?? "s3://backups/",
        ...(options.endpointURL === undefined ? {} : { endpointURL: options.endpointURL }),
        s3Credentials: {
          accessKeyId: { name: keys, key: "ACCESS_KEY_ID" },
          secretAccessKey: { name: keys, key: "ACCESS_SECRET_KEY" },
        },
        wal: { compression: "zstd", maxParallel: 4 },
        data: { compression: "gzip" },
      },
      retentionPolicy: "2w",
    },
  });
  const cluster = new Cluster(chart, "archived", {
    namespace,
    instances: 3,
    image: "localhost/postgresql:17",
    storage: "1Gi",
    database: "app",
    spec: {
      plugins: [{ name: plugin, isWALArchiver: true, parameters: { barmanObjectName: archive.name } }],
    },
  });
  new ScheduledBackup(chart, "nightly", {
    namespace,
    spec: {
      // Seconds first: two o'clock every night.
      schedule: "0 0 2 * * *",
      cluster: { name: cluster.name },
      method: "plugin",
      pluginConfiguration: { name: plugin },
    },
  });
}
