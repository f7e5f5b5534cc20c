import type { Cluster } from "../../api/generated/cluster.ts";
import type { PluginDocument, PluginValidationError } from "../../ports/plugin.ts";
import { Operator, OperatorCapability_RPC_TypeSchema } from "../gen/operator_pb.ts";
import { decodeDocument, encodeCluster } from "./document.ts";
import { defineRpc, nothing } from "./rpc.ts";
import { capabilityElements, capabilityNames } from "./rpc-capabilities.ts";
import { WireError } from "./wire-error.ts";

const definition = {
  toRequest: (cluster: PluginDocument) => ({ definition: encodeCluster(cluster) }),
  fromRequest: (message: { definition: Uint8Array }): Cluster => decodeDocument(message.definition, "definition"),
};

const validationErrors = {
  toResponse: (errors: readonly PluginValidationError[]) => ({
    validationErrors: errors.map(({ path, value, message }) => {
      if (path.length === 0) throw new WireError(`validation error "${message}" has an empty path`);
      return { pathComponents: [...path], value, message };
    }),
  }),
  fromResponse: (answer: {
    validationErrors: { pathComponents: string[]; value: string; message: string }[];
  }): readonly PluginValidationError[] =>
    answer.validationErrors.map(({ pathComponents: path, value, message }) => {
      if (path.length === 0) throw new WireError(`validation error "${message}" names no field`);
      return { path, value, message };
    }),
};

/** Calls of the Operator service. */
export const operatorRpcs = {
  getCapabilities: defineRpc(Operator.method.getCapabilities, {
    toRequest: nothing.to,
    fromRequest: nothing.from,
    toResponse: (names: readonly string[]) => ({
      capabilities: capabilityElements(OperatorCapability_RPC_TypeSchema, names),
    }),
    fromResponse: (message) => capabilityNames(OperatorCapability_RPC_TypeSchema, message.capabilities),
  }),
  validateClusterCreate: defineRpc(Operator.method.validateClusterCreate, { ...definition, ...validationErrors }),
  validateClusterChange: defineRpc(Operator.method.validateClusterChange, {
    toRequest: (clusters: { before: PluginDocument; after: PluginDocument }) => ({
      oldCluster: encodeCluster(clusters.before),
      newCluster: encodeCluster(clusters.after),
    }),
    fromRequest: (message): { before: Cluster; after: Cluster } => ({
      before: decodeDocument(message.oldCluster, "old_cluster"),
      after: decodeDocument(message.newCluster, "new_cluster"),
    }),
    ...validationErrors,
  }),
  mutateCluster: defineRpc(Operator.method.mutateCluster, {
    ...definition,
    toResponse: (jsonPatch: Uint8Array) => ({ jsonPatch }),
    fromResponse: ({ jsonPatch }): Uint8Array => jsonPatch,
  }),
  setStatusInCluster: defineRpc(Operator.method.setStatusInCluster, {
    toRequest: (cluster: PluginDocument) => ({ cluster: encodeCluster(cluster) }),
    fromRequest: ({ cluster }): Cluster => decodeDocument(cluster, "cluster"),
    toResponse: (status: string) => {
      if (status !== "") decodeDocument(Buffer.from(status), "the status of the plugin");
      return { jsonStatus: Buffer.from(status) };
    },
    fromResponse: ({ jsonStatus }): string => {
      if (jsonStatus.byteLength > 0) decodeDocument(jsonStatus, "the status of the plugin");
      return Buffer.from(jsonStatus).toString("utf8");
    },
  }),
  deregister: defineRpc(Operator.method.deregister, {
    ...definition,
    toResponse: () => ({}),
    fromResponse: (): undefined => undefined,
  }),
};
