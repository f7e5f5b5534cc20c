/** Namespace and name of the operator's Deployment. */
export const operator = { namespace: "cnpg-system", deployment: "cnpg-controller-manager" } as const;

/** The cluster of `examples/quickstart.ts`. */
export const quickstart = { namespace: "default", name: "quickstart" } as const;
