import type { Cluster } from "../../api/generated/cluster.ts";
import type { KubeObject } from "../../ports/kube-api.ts";
import type { LifecycleCapability, LifecycleOperation, PluginDocument } from "../../ports/plugin.ts";
import { OperatorLifecycle, OperatorOperationType_Type } from "../gen/operator_lifecycle_pb.ts";
import { decodeDocument, encodeCluster, encodeDocument } from "./document.ts";
import { defineRpc, nothing } from "./rpc.ts";

const numbers: Record<LifecycleOperation, OperatorOperationType_Type> = {
  patch: OperatorOperationType_Type.PATCH,
  update: OperatorOperationType_Type.UPDATE,
  create: OperatorOperationType_Type.CREATE,
  delete: OperatorOperationType_Type.DELETE,
  evaluate: OperatorOperationType_Type.EVALUATE,
};

/** Calls of the OperatorLifecycle service. */
export const lifecycleRpcs = {
  getCapabilities: defineRpc(OperatorLifecycle.method.getCapabilities, {
    toRequest: nothing.to,
    fromRequest: nothing.from,
    toResponse: (capabilities: readonly LifecycleCapability[]) => ({
      lifecycleCapabilities: capabilities.map(({ group, kind, operations }) => ({
        group,
        kind,
        operationTypes: operations.map((operation) => ({ type: numbers[operation] })),
      })),
    }),
    // Operations of a later protocol are nothing that this client would call, so they are left out.
    fromResponse: (message): readonly LifecycleCapability[] =>
      message.lifecycleCapabilities.map(({ group, kind, operationTypes }) => ({
        group,
        kind,
        operations: operationTypes.flatMap(({ type }) => operationOf(type) ?? []),
      })),
  }),
  hook: defineRpc(OperatorLifecycle.method.lifecycleHook, {
    toRequest: (request: { operation: LifecycleOperation; cluster: PluginDocument; object: PluginDocument }) => ({
      operationType: { type: numbers[request.operation] },
      clusterDefinition: encodeCluster(request.cluster),
      // Never trimmed: the patch that comes back applies to exactly this text.
      objectDefinition: encodeDocument(request.object),
    }),
    // Hooks of Go plugins do without it where it does not matter to them.
    fromRequest: (message): { operation: LifecycleOperation | "unknown"; cluster: Cluster; object: KubeObject } => ({
      operation: operationOf(message.operationType?.type ?? OperatorOperationType_Type.UNSPECIFIED) ?? "unknown",
      cluster: decodeDocument(message.clusterDefinition, "cluster_definition"),
      object: decodeDocument(message.objectDefinition, "object_definition"),
    }),
    toResponse: (jsonPatch: Uint8Array) => ({ jsonPatch }),
    fromResponse: ({ jsonPatch }): Uint8Array => jsonPatch,
  }),
};

function operationOf(type: OperatorOperationType_Type): LifecycleOperation | undefined {
  const found = Object.entries(numbers).find(([, number]) => number === type);
  return found?.[0] as LifecycleOperation | undefined;
}
