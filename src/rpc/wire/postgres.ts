import type { Cluster } from "../../api/generated/cluster.ts";
import type { ConfigurationOperation, EnrichConfigurationRequest } from "../../ports/plugin.ts";
import { OperationType_Type, Postgres, PostgresCapability_RPC_TypeSchema } from "../gen/postgres_pb.ts";
import { decodeDocument, encodeCluster } from "./document.ts";
import { defineRpc, nothing } from "./rpc.ts";
import { capabilityElements, capabilityNames } from "./rpc-capabilities.ts";
import { WireError } from "./wire-error.ts";

const numbers: Record<ConfigurationOperation, OperationType_Type> = {
  init: OperationType_Type.INIT,
  restore: OperationType_Type.RESTORE,
  reconcile: OperationType_Type.RECONCILE,
  upgrade: OperationType_Type.UPGRADE,
};

/** Calls of the Postgres service. */
export const postgresRpcs = {
  getCapabilities: defineRpc(Postgres.method.getCapabilities, {
    toRequest: nothing.to,
    fromRequest: nothing.from,
    toResponse: (names: readonly string[]) => ({
      capabilities: capabilityElements(PostgresCapability_RPC_TypeSchema, names),
    }),
    fromResponse: (message) => capabilityNames(PostgresCapability_RPC_TypeSchema, message.capabilities),
  }),
  enrichConfiguration: defineRpc(Postgres.method.enrichConfiguration, {
    toRequest: (request: EnrichConfigurationRequest) => ({
      configs: request.configs,
      clusterDefinition: encodeCluster(request.cluster),
      operationType: { type: numbers[request.operation] },
    }),
    fromRequest: (message): EnrichConfigurationRequest<Cluster> => {
      const type = message.operationType?.type ?? OperationType_Type.UNSPECIFIED;
      const found = Object.entries(numbers).find(([, number]) => number === type);
      if (!found) throw new WireError(`operation_type ${type} is not known`);
      return {
        cluster: decodeDocument(message.clusterDefinition, "cluster_definition"),
        configs: message.configs,
        operation: found[0] as ConfigurationOperation,
      };
    },
    toResponse: (configs: Record<string, string>) => ({ configs }),
    fromResponse: ({ configs }): Record<string, string> => configs,
  }),
};
