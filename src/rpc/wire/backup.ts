import type { Backup as BackupObject } from "../../api/generated/backup.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import type { PluginBackupRequest, PluginBackupResult } from "../../ports/plugin.ts";
import { Backup, BackupCapability_RPC_TypeSchema } from "../gen/backup_pb.ts";
import { decodeDocument, encodeBackup, encodeCluster } from "./document.ts";
import { defineRpc, nothing } from "./rpc.ts";
import { capabilityElements, capabilityNames } from "./rpc-capabilities.ts";

/** What a server gets. */
export interface BackupCall {
  cluster: Cluster;
  backup: BackupObject;
  parameters: Record<string, string>;
}

/** Calls of the Backup service. */
export const backupRpcs = {
  getCapabilities: defineRpc(Backup.method.getCapabilities, {
    toRequest: nothing.to,
    fromRequest: nothing.from,
    toResponse: (names: readonly string[]) => ({
      capabilities: capabilityElements(BackupCapability_RPC_TypeSchema, names),
    }),
    fromResponse: (message) => capabilityNames(BackupCapability_RPC_TypeSchema, message.capabilities),
  }),
  backup: defineRpc(Backup.method.backup, {
    toRequest: (request: PluginBackupRequest) => ({
      clusterDefinition: encodeCluster(request.cluster),
      backupDefinition: encodeBackup(request.backup),
      parameters: request.parameters ?? {},
    }),
    fromRequest: (message): BackupCall => ({
      cluster: decodeDocument(message.clusterDefinition, "cluster_definition"),
      backup: decodeDocument(message.backupDefinition, "backup_definition"),
      parameters: message.parameters,
    }),
    toResponse: ({ startedAt, stoppedAt, ...rest }: PluginBackupResult) => ({
      ...rest,
      startedAt: toSeconds(startedAt),
      stoppedAt: toSeconds(stoppedAt),
    }),
    fromResponse: ({ $typeName: _, $unknown: __, startedAt, stoppedAt, ...rest }): PluginBackupResult => ({
      ...rest,
      ...(startedAt > 0n ? { startedAt: Number(startedAt) * 1000 } : {}),
      ...(stoppedAt > 0n ? { stoppedAt: Number(stoppedAt) * 1000 } : {}),
    }),
  }),
};

function toSeconds(ms: number | undefined): bigint {
  return ms === undefined ? 0n : BigInt(Math.floor(ms / 1000));
}
