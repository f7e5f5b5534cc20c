/** Namespace and name of the operator's Deployment. */
export const operator = { namespace: "cnpg-system", deployment: "cnpg-controller-manager" } as const;

/** The cluster of `examples/quickstart.ts`. */
export const quickstart = { namespace: "default", name: "quickstart" } as const;

/** Name of the barman-cloud plugin, and where its Deployment is. */
export const plugin = {
  name: "barman-cloud.cloudnative-pg.io",
  namespace: "cnpg-system",
  deployment: "barman-cloud",
} as const;
