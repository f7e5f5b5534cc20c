import type { Cluster } from "../../api/generated/cluster.ts";
import type { PluginRestoreRequest, PluginRestoreResult } from "../../ports/plugin.ts";
import { RestoreJobHooks, RestoreJobHooksCapability_KindSchema } from "../gen/restore_job_pb.ts";
import { decodeDocument, encodeCluster } from "./document.ts";
import { enumName, enumNumber } from "./enum-name.ts";
import { defineRpc, nothing } from "./rpc.ts";

/** Calls of the RestoreJobHooks service. */
export const restoreJobRpcs = {
  getCapabilities: defineRpc(RestoreJobHooks.method.getCapabilities, {
    toRequest: nothing.to,
    fromRequest: nothing.from,
    toResponse: (names: readonly string[]) => ({
      capabilities: names.map((name) => ({ kind: enumNumber(RestoreJobHooksCapability_KindSchema, name) })),
    }),
    fromResponse: (message): readonly string[] =>
      message.capabilities.map(({ kind }) => enumName(RestoreJobHooksCapability_KindSchema, kind)),
  }),
  restore: defineRpc(RestoreJobHooks.method.restore, {
    toRequest: (request: PluginRestoreRequest) => ({
      clusterDefinition: encodeCluster(request.cluster),
      ...(request.checkEmptyWalArchive === undefined ? {} : { checkEmptyWalArchive: request.checkEmptyWalArchive }),
    }),
    fromRequest: (message): PluginRestoreRequest<Cluster> => ({
      cluster: decodeDocument(message.clusterDefinition, "cluster_definition"),
      ...(message.checkEmptyWalArchive === undefined ? {} : { checkEmptyWalArchive: message.checkEmptyWalArchive }),
    }),
    toResponse: ({ restoreConfig, envs }: PluginRestoreResult) => ({ restoreConfig, envs: [...envs] }),
    fromResponse: ({ restoreConfig, envs }): PluginRestoreResult => ({ restoreConfig, envs }),
  }),
};
