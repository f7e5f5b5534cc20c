import type { Cluster } from "../../api/generated/cluster.ts";
import type { KubeObject } from "../../ports/kube-api.ts";
import type { PluginDocument, ReconcilerResult } from "../../ports/plugin.ts";
import {
  ReconcilerHooks,
  ReconcilerHooksCapability_KindSchema,
  ReconcilerHooksResult_Behavior,
} from "../gen/reconciler_pb.ts";
import { decodeDocument, encodeCluster, encodeDocument } from "./document.ts";
import { enumName, enumNumber } from "./enum-name.ts";
import { defineRpc, nothing } from "./rpc.ts";

const behaviors = {
  continue: ReconcilerHooksResult_Behavior.CONTINUE,
  requeue: ReconcilerHooksResult_Behavior.REQUEUE,
  terminate: ReconcilerHooksResult_Behavior.TERMINATE,
} as const;

const hook = {
  toRequest: (request: { cluster: PluginDocument; resource: PluginDocument }) => {
    const clusterDefinition = encodeCluster(request.cluster);
    const same = request.resource === request.cluster;
    return { clusterDefinition, resourceDefinition: same ? clusterDefinition : encodeDocument(request.resource) };
  },
  fromRequest: (message: {
    clusterDefinition: Uint8Array;
    resourceDefinition: Uint8Array;
  }): { cluster: Cluster; resource: KubeObject } => ({
    cluster: decodeDocument(message.clusterDefinition, "cluster_definition"),
    resource: decodeDocument(message.resourceDefinition, "resource_definition"),
  }),
  toResponse: ({ behavior, requeueAfterSeconds }: ReconcilerResult) => ({
    behavior: behaviors[behavior],
    requeueAfter: BigInt(Math.max(0, Math.ceil(requeueAfterSeconds))),
  }),
  fromResponse: (message: { behavior: ReconcilerHooksResult_Behavior; requeueAfter: bigint }): ReconcilerResult => ({
    behavior: behaviorOf(message.behavior),
    requeueAfterSeconds: Math.max(0, Number(message.requeueAfter)),
  }),
};

/** Calls of the ReconcilerHooks service. */
export const reconcilerRpcs = {
  getCapabilities: defineRpc(ReconcilerHooks.method.getCapabilities, {
    toRequest: nothing.to,
    fromRequest: nothing.from,
    toResponse: (names: readonly string[]) => ({
      reconcilerCapabilities: names.map((name) => ({ kind: enumNumber(ReconcilerHooksCapability_KindSchema, name) })),
    }),
    fromResponse: (message): readonly string[] =>
      message.reconcilerCapabilities.map(({ kind }) => enumName(ReconcilerHooksCapability_KindSchema, kind)),
  }),
  pre: defineRpc(ReconcilerHooks.method.pre, hook),
  post: defineRpc(ReconcilerHooks.method.post, hook),
};

/** Unspecified and unknown numbers go on, as upstream. */
function behaviorOf(value: ReconcilerHooksResult_Behavior): ReconcilerResult["behavior"] {
  if (value === behaviors.requeue) return "requeue";
  return value === behaviors.terminate ? "terminate" : "continue";
}
