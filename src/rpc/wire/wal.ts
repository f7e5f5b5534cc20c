import type { Cluster } from "../../api/generated/cluster.ts";
import type { PluginDocument, WalArchiveRequest, WalRestoreRequest, WalStatus } from "../../ports/plugin.ts";
import { WAL, WALCapability_RPC_TypeSchema, WALRestoreRequest_Mode } from "../gen/wal_pb.ts";
import { decodeDocument, encodeCluster } from "./document.ts";
import { defineRpc, nothing } from "./rpc.ts";
import { capabilityElements, capabilityNames } from "./rpc-capabilities.ts";

const done = { toResponse: () => ({}), fromResponse: (): undefined => undefined };

/** Calls of the WAL service. */
export const walRpcs = {
  getCapabilities: defineRpc(WAL.method.getCapabilities, {
    toRequest: nothing.to,
    fromRequest: nothing.from,
    toResponse: (names: readonly string[]) => ({
      capabilities: capabilityElements(WALCapability_RPC_TypeSchema, names),
    }),
    fromResponse: (message) => capabilityNames(WALCapability_RPC_TypeSchema, message.capabilities),
  }),
  archive: defineRpc(WAL.method.archive, {
    toRequest: (request: WalArchiveRequest) => ({
      clusterDefinition: encodeCluster(request.cluster),
      sourceFileName: request.sourceFileName,
      parameters: request.parameters ?? {},
      // Presence matters: false is a decision, absence an old client.
      ...(request.checkEmptyWalArchive === undefined ? {} : { checkEmptyWalArchive: request.checkEmptyWalArchive }),
    }),
    fromRequest: (message): WalArchiveRequest<Cluster> => ({
      cluster: decodeDocument(message.clusterDefinition, "cluster_definition"),
      sourceFileName: message.sourceFileName,
      parameters: message.parameters,
      ...(message.checkEmptyWalArchive === undefined ? {} : { checkEmptyWalArchive: message.checkEmptyWalArchive }),
    }),
    ...done,
  }),
  restore: defineRpc(WAL.method.restore, {
    toRequest: (request: WalRestoreRequest) => ({
      clusterDefinition: encodeCluster(request.cluster),
      sourceWalName: request.sourceWalName,
      destinationFileName: request.destinationFileName,
      parameters: request.parameters ?? {},
      mode: request.mode === "rewind" ? WALRestoreRequest_Mode.REWIND : WALRestoreRequest_Mode.RECOVERY,
    }),
    fromRequest: (message): Required<WalRestoreRequest<Cluster>> => ({
      cluster: decodeDocument(message.clusterDefinition, "cluster_definition"),
      sourceWalName: message.sourceWalName,
      destinationFileName: message.destinationFileName,
      parameters: message.parameters,
      mode: message.mode === WALRestoreRequest_Mode.REWIND ? "rewind" : "recovery",
    }),
    ...done,
  }),
  status: defineRpc(WAL.method.status, {
    toRequest: (cluster: PluginDocument) => ({ clusterDefinition: encodeCluster(cluster) }),
    fromRequest: (message): Cluster => decodeDocument(message.clusterDefinition, "cluster_definition"),
    toResponse: (status: WalStatus) => status,
    fromResponse: ({ firstWal, lastWal, additionalInformation }): WalStatus => ({
      firstWal,
      lastWal,
      additionalInformation,
    }),
  }),
  setFirstRequired: defineRpc(WAL.method.setFirstRequired, {
    toRequest: (request: { cluster: PluginDocument; firstRequiredWal: string }) => ({
      clusterDefinition: encodeCluster(request.cluster),
      firstRequiredWal: request.firstRequiredWal,
    }),
    fromRequest: (message): { cluster: Cluster; firstRequiredWal: string } => ({
      cluster: decodeDocument(message.clusterDefinition, "cluster_definition"),
      firstRequiredWal: message.firstRequiredWal,
    }),
    ...done,
  }),
};
