// Public entry `cnpg-ts/plugin`: write a CNPG-I plugin in TypeScript.
export type { Backup } from "../../api/generated/backup.ts";
export type { Cluster } from "../../api/generated/cluster.ts";
export type { KubeObject } from "../../ports/kube-api.ts";
export type { Logger } from "../../ports/logger.ts";
export type {
  EnrichConfigurationRequest,
  LifecycleCapability,
  LifecycleOperation,
  PluginBackupResult,
  PluginMetric,
  PluginRestoreRequest,
  PluginRestoreResult,
  PluginSample,
  PluginValidationError,
  WalArchiveRequest,
  WalRestoreRequest,
  WalStatus,
} from "../../ports/plugin.ts";
export { applyLifecyclePatch, type JsonPatchOperation } from "../../rpc/lifecycle-patch.ts";
export { bindHandler, type CallContext, type Handler } from "../../rpc/server.ts";
export { type PluginConfiguration, parameterError, readPluginConfiguration } from "./configuration.ts";
export {
  createPluginServer,
  type PluginServer,
  type PluginServerOptions,
  type PluginSocket,
  type PluginTls,
} from "./create-plugin-server.ts";
export type { PluginIdentityOptions } from "./identity.ts";
export type { Interceptor } from "./interceptors.ts";
export { buildJsonPatch } from "./json-patch.ts";
export { type ServePluginOptions, servePlugin } from "./serve-plugin.ts";
export type * from "./services.ts";
export { type SidecarOptions, withSidecar } from "./sidecar.ts";
export { StatusError } from "./status-error.ts";
