// # Two clusters in two places, of which one follows the other
//
// Each Kubernetes cluster gets the file of its own site. Both share an object store; the follower streams besides if it is given
// an address. To change places without losing a row:
//   1. set `primary` to the other site and apply it where the primary is: its status then shows a `demotionToken`;
//   2. apply the same on the other side, with that token as `promotionToken`.
//
// How it works: a site whose name is not `primary` is a replica cluster and takes no writes. The token names the point at which the
// former primary stopped, and nobody is promoted at any other point.
import { type App, Chart } from "cdk8s";
import { Cluster, ObjectStore } from "../constructs/index.ts";

const plugin = "barman-cloud.cloudnative-pg.io";
const sites = ["east", "west"] as const;

type Site = (typeof sites)[number];

export interface TwoSitesOptions {
  /** The site that takes writes. */
  readonly primary: Site;
  /** Token of the site that took writes before; only while this one takes over. */
  readonly promotionToken?: string;
  /** Folder in a bucket that both sites reach. @default s3://backups/ */
  readonly destinationPath?: string;
}

/** The cluster of one site. */
export function siteOf(app: App, self: Site, options: TwoSitesOptions): void {
  const chart = new Chart(app, self);
  const namespace = "default";
  const archive = new ObjectStore(chart, "archive", {
    namespace,
    spec: {
      configuration: {
        destinationPath: options.destinationPath ?? "s3://backups/",
        s3Credentials: {
          accessKeyId: { name: "archive-keys", key: "ACCESS_KEY_ID" },
          secretAccessKey: { name: "archive-keys", key: "ACCESS_SECRET_KEY" },
        },
      },
    },
  });
  const other: Site = self === "east" ? "west" : "east";
  const isFollower = options.primary !== self;
  const token = !isFollower && options.promotionToken ? { promotionToken: options.promotionToken } : {};
  new Cluster(chart, self, {
    namespace,
    instances: 3,
    image: "localhost/postgresql:17",
    storage: "1Gi",
    spec: {
      plugins: [{ name: plugin, isWALArchiver: true, parameters: { barmanObjectName: archive.name } }],
      replica: { self, primary: options.primary, source: other, ...token },
      externalClusters: sites.map((name) => ({
        name,
        plugin: { name: plugin, parameters: { barmanObjectName: archive.name, serverName: name } },
      })),
      // What the site is made from; once it is there, nothing of this matters any more.
      bootstrap: isFollower ? { recovery: { source: other } } : { initdb: { database: "app", owner: "app" } },
    },
  });
}
