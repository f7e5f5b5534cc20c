import { boolean, type Fields, integer, object, required, string, stringList } from "../parts/builders.ts";

const highAvailability = object(
  "Slots that keep WAL for the cluster's own standbys.",
  {
    enabled: boolean("Whether standbys use slots.", { default: true }),
    slotPrefix: string("Text before the instance's name in a slot's name.", {
      default: "_cnpg_",
      pattern: "^[0-9a-z_]*$",
    }),
    synchronizeLogicalDecoding: boolean("Copy logical slots to the standbys, so that they survive a failover."),
  },
  { default: { enabled: true } },
);

/** How instances replicate from each other and from elsewhere. */
export const replication: Fields = {
  maxSyncReplicas: integer("Most synchronous standbys, in the older form of the setting.", { default: 0, minimum: 0 }),
  minSyncReplicas: integer("Fewest synchronous standbys, in the older form of the setting.", {
    default: 0,
    minimum: 0,
  }),
  primaryLease: object("Timing of the Lease that tells who may be primary.", {
    leaseDurationSeconds: integer("Seconds after which a Lease that is not renewed is over.", {
      bits: 32,
      default: 15,
      minimum: 1,
    }),
    releasedLeaseDurationSeconds: integer("Duration that a primary writes when it gives the Lease back.", {
      bits: 32,
      default: 1,
      minimum: 1,
    }),
    renewDeadlineSeconds: integer("Seconds that the holder tries to renew before it gives up.", {
      bits: 32,
      default: 10,
      minimum: 1,
    }),
    retryPeriodSeconds: integer("Seconds between two tries.", { bits: 32, default: 2, minimum: 1 }),
  }),
  replica: object("Follow another cluster instead of taking writes.", {
    enabled: boolean("Whether this cluster follows; told by primary and self when those are set."),
    minApplyDelay: string("How far behind the source changes are applied, such as 4h."),
    primary: string("Name of the cluster that takes writes, among those that follow each other."),
    promotionToken: string("Token of the demoted cluster, which lets this one take over without losing anything."),
    self: string("Name of this cluster among those that follow each other; its own name by default."),
    source: required(string("External cluster to follow.", { minLength: 1 })),
  }),
  replicationSlots: object(
    "Replication slots that the operator looks after.",
    {
      highAvailability,
      synchronizeReplicas: object("Slots of users that are copied to the standbys.", {
        enabled: required(boolean("Whether they are copied.", { default: true })),
        excludePatterns: stringList("Regular expressions for names of slots that are left out."),
      }),
      updateInterval: integer("Seconds between two updates of the standbys' slots.", { default: 30, minimum: 1 }),
    },
    { default: { highAvailability: { enabled: true } } },
  ),
};
