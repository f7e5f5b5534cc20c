import { freezeApiServer } from "../e2e/support/control-plane.ts";
import { type Fault, nothing } from "./fault.ts";
import { deleteByForce } from "./in-instance.ts";

/** Faults of what PostgreSQL has to live without for a time. */
export const controlPlaneFaults: Readonly<Record<string, Fault>> = {
  "api-server-away": {
    about: "the API server stands still for a minute",
    holdSeconds: 0,
    controlPlane: true,
    make: async () => {
      await freezeApiServer(60_000);
      return nothing;
    },
  },
  "operator-killed": {
    about: "the operator's pod is deleted by force together with the primary's",
    holdSeconds: 0,
    controlPlane: true,
    make: async ({ cluster, primary }) => {
      await Promise.all([
        deleteByForce("cnpg-system", "-l", "app.kubernetes.io/name=cloudnative-pg"),
        deleteByForce(cluster.namespace, primary.name),
      ]);
      return nothing;
    },
  },
};
