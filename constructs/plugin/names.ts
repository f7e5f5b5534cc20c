/** Names that the plugin's objects have on every installation. */
export const pluginNames = {
  deployment: "barman-cloud",
  service: "barman-cloud",
  serviceAccount: "plugin-barman-cloud",
  clusterRole: "plugin-barman-cloud",
  clusterRoleBinding: "plugin-barman-cloud-binding",
  leaderElection: "barman-plugin-leader-election-role",
  leaderElectionBinding: "barman-plugin-leader-election-rolebinding",
  certificates: "barman-plugin-certificates-role",
  certificatesBinding: "barman-plugin-certificates-rolebinding",
  metricsAuth: "barman-plugin-metrics-auth-role",
  metricsAuthBinding: "barman-plugin-metrics-auth-rolebinding",
  metricsReader: "barman-plugin-metrics-reader",
  objectStoreEditor: "barman-plugin-objectstore-editor-role",
  objectStoreViewer: "barman-plugin-objectstore-viewer-role",
  storePolicy: "barman-plugin-objectstore-credentials",
  issuer: "selfsigned-issuer",
  serverCertificate: "barman-cloud-server",
  clientCertificate: "barman-cloud-client",
  serverSecret: "barman-cloud-server-tls",
  clientSecret: "barman-cloud-client-tls",
  authoritySecret: "barman-cloud-ca",
} as const;

/** Label by which the Service finds the pods. */
export const pluginPodLabels = { app: "barman-cloud" };

/** Port of the operator's calls. */
export const pluginPort = 9090;

/** Port of `/healthz` and `/readyz`. */
export const pluginHealthPort = 8081;
