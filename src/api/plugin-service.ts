/** Keys by which a Service of the operator's namespace says that a plugin is behind it; `label` holds the plugin's name. */
export const pluginService = {
  label: "cnpg.io/pluginName",
  clientSecret: "cnpg.io/pluginClientSecret",
  serverSecret: "cnpg.io/pluginServerSecret",
  port: "cnpg.io/pluginPort",
  serverName: "cnpg.io/pluginServerName",
  finalizer: "cnpg.io/cleanupPlugin",
} as const;

/** Folder of plugin sockets, unless PLUGIN_SOCKET_DIR names another; a file's name is the plugin's name. */
export const pluginSocketFolder = "/plugins";
