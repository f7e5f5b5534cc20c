import type { Schema } from "../../../src/schema/crd/structural-schema.ts";
import { quantity } from "../core/scalars.ts";
import { boolean, enumOf, type Fields, integer, object, use } from "../parts/builders.ts";

const timing: Fields = {
  failureThreshold: integer("Failures in a row that count as one.", { bits: 32 }),
  initialDelaySeconds: integer("Seconds from the container's start to the first probe.", { bits: 32 }),
  periodSeconds: integer("Seconds between probes.", { bits: 32 }),
  successThreshold: integer("Successes in a row that count as one.", { bits: 32 }),
  terminationGracePeriodSeconds: integer("Seconds that a container has to end after a failed probe.", { bits: 64 }),
  timeoutSeconds: integer("Seconds that a probe may take.", { bits: 32 }),
};

function strategyProbe(description: string): Schema {
  return object(description, {
    ...timing,
    maximumLag: use("Lag behind the primary up to which a standby passes, for type streaming.", quantity),
    type: enumOf("What is asked of PostgreSQL.", ["pg_isready", "streaming", "query"]),
  });
}

/** `spec.probes`: how the kubelet looks at the instances. */
export const probes = object("How the kubelet looks at the instances.", {
  liveness: object("When an instance is restarted.", {
    ...timing,
    isolationCheck: object("Whether a primary that is cut off from everybody fails the probe.", {
      connectionTimeout: integer("Milliseconds to wait for a connection to another instance.", { default: 1000 }),
      enabled: boolean("Whether isolation is looked for.", { default: true }),
      requestTimeout: integer("Milliseconds to wait for an answer of another instance.", { default: 1000 }),
    }),
  }),
  readiness: strategyProbe("When an instance gets connections."),
  startup: strategyProbe("When an instance counts as started."),
});
