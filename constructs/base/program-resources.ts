import { k8s } from "cdk8s-plus-28";

/** Requests and limits of a program's container, each by the name of the resource, for example `cpu: "100m"`. */
export interface ProgramResources {
  readonly requests?: Record<string, string>;
  readonly limits?: Record<string, string>;
}

export function resourceRequirements(resources: ProgramResources): k8s.ResourceRequirements {
  const convert = (values: Record<string, string>) =>
    Object.fromEntries(Object.entries(values).map(([name, value]) => [name, k8s.Quantity.fromString(value)]));
  return {
    ...(resources.requests && { requests: convert(resources.requests) }),
    ...(resources.limits && { limits: convert(resources.limits) }),
  };
}
