import { compatibleVersion } from "../api/constants.ts";

/** Settings of the operator that shape the objects it makes for a cluster. */
export interface BuildContext {
  /** Image whose `/manager bootstrap` fills the scratch volume of every pod. */
  operatorImageName: string;
  /** Namespace of the operator; empty when it is unknown. */
  operatorNamespace: string;
  /** Written into the operatorVersion annotation of children. */
  operatorVersion: string;
  /** DNS domain of the Kubernetes cluster. */
  clusterDomain: string;
  /** Whether the `-any` Service exists and pods carry it as their subdomain. */
  createAnyService: boolean;
  /** Shell globs of Cluster labels that children inherit. */
  inheritedLabels: readonly string[];
  /** Shell globs of Cluster annotations that children inherit. */
  inheritedAnnotations: readonly string[];
  /** Milliseconds, as text, handed to instances; absent leaves their own default. */
  standbyTcpUserTimeout?: string;
  /** True when the API server has security context constraints: then pods carry no pod security context. */
  securityContextConstraints: boolean;
  /** Name of the log field for the level, when the operator was started with one. */
  logFieldLevel?: string;
  /** Name of the log field for the time stamp, when the operator was started with one. */
  logFieldTimestamp?: string;
  /** Pull secret of the operator namespace that is copied for each cluster; empty for none. */
  pullSecretName: string;
  /** Operand image of clusters that name none. */
  defaultPostgresImage: string;
  /** Days that a certificate is valid. */
  certificateDurationDays: number;
  /** Days before its end at which a certificate is renewed. */
  expiringThresholdDays: number;
  /** ConfigMap of the operator namespace with the default queries; empty for none. */
  monitoringQueriesConfigMap: string;
  /** Secret of the operator namespace with the default queries; empty for none. */
  monitoringQueriesSecret: string;
  /** Plugins that every cluster uses without naming them. */
  includePlugins: readonly string[];
}

/** The context of an operator that runs with its built-in settings. */
export const defaultBuildContext: BuildContext = {
  operatorImageName: `ghcr.io/cloudnative-pg/cloudnative-pg:${compatibleVersion}`,
  operatorNamespace: "",
  operatorVersion: compatibleVersion,
  clusterDomain: "cluster.local",
  createAnyService: false,
  inheritedLabels: [],
  inheritedAnnotations: [],
  securityContextConstraints: false,
  pullSecretName: "cnpg-pull-secret",
  defaultPostgresImage: "ghcr.io/cloudnative-pg/postgresql:18.4-system-trixie",
  certificateDurationDays: 90,
  expiringThresholdDays: 7,
  monitoringQueriesConfigMap: "",
  monitoringQueriesSecret: "",
  includePlugins: [],
};
