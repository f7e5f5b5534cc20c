import { labelSelector } from "../core/generated/kubernetes.ts";
import { boolean, enumOf, type Fields, integer, listOf, object, required, string, use } from "../parts/builders.ts";
import { nameReference } from "../shared/references.ts";
import { logLevel } from "../shared/words.ts";

/** How the cluster is started, stopped, updated and kept up. */
export const operation: Fields = {
  description: string("What the cluster is for, in words for people."),
  enablePDB: boolean("Make PodDisruptionBudgets for the instances.", { default: true }),
  enableSuperuserAccess: boolean("Give the superuser a password, kept in a Secret.", { default: false }),
  failoverDelay: integer("Seconds between the loss of the primary and the failover.", { bits: 32, default: 0 }),
  instances: required(integer("Instances to run, the primary included.", { default: 1, minimum: 1 })),
  livenessProbeTimeout: integer("Seconds of failing liveness probes after which an instance is restarted.", {
    bits: 32,
  }),
  logLevel,
  nodeMaintenanceWindow: object("Whether nodes are being worked on.", {
    inProgress: boolean("Whether the work is going on.", { default: false }),
    reusePVC: boolean("Wait for the node and its volumes to come back instead of making new ones.", { default: true }),
  }),
  podSelectorRefs: listOf(
    "Names for groups of pods that lines of pg_hba may use.",
    object("A group of pods.", {
      name: required(string("Name of the group.", { minLength: 1, pattern: "^[a-z]([a-z0-9_-]*[a-z0-9])?$" })),
      selector: required(use("Labels of the pods, in the cluster's namespace.", labelSelector)),
    }),
    { keys: ["name"] },
  ),
  primaryUpdateMethod: enumOf("How the primary is updated: restarted, or switched over.", ["switchover", "restart"], {
    default: "restart",
  }),
  primaryUpdateStrategy: enumOf(
    "Whether the primary is updated after the standbys at once or when a person says so.",
    ["unsupervised", "supervised"],
    { default: "unsupervised" },
  ),
  smartShutdownTimeout: integer("Seconds of a stop that are given to a smart shutdown.", { bits: 32, default: 180 }),
  startDelay: integer("Seconds that PostgreSQL may take to start.", { bits: 32, default: 3600 }),
  stopDelay: integer("Seconds that PostgreSQL may take to stop.", { bits: 32, default: 1800 }),
  superuserSecret: nameReference("Secret with the superuser's password; made by the operator by default."),
  switchoverDelay: integer("Seconds that a primary may take to stop before a switchover.", { bits: 32, default: 3600 }),
};
