import type { Construct } from "constructs";
import { cnpgApiVersion } from "../../src/api/constants.ts";
import type { Subscription as SubscriptionObject } from "../../src/api/generated/subscription.ts";
import { CustomResource, type ResourceProps } from "../base/custom-resource.ts";

/** The whole `spec` of a Subscription, as the API has it. */
export type SubscriptionSpec = SubscriptionObject["spec"];

export interface SubscriptionProps extends ResourceProps {
  /** The object's `spec`, passed through as it is. */
  readonly spec: SubscriptionSpec;
}

/** A logical replication subscription. */
export class Subscription extends CustomResource {
  constructor(scope: Construct, id: string, props: SubscriptionProps) {
    super(scope, id, props, { apiVersion: cnpgApiVersion, kind: "Subscription", spec: props.spec });
  }
}
