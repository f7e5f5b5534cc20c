import type { Cluster } from "../../api/generated/cluster.ts";

/** Settings of the operator that decide about defaults. */
export interface AdmissionSettings {
  /** Operand image of clusters that name none. */
  defaultPostgresImage: string;
  /** Whether there is a ConfigMap with default queries: its name, or empty. */
  monitoringQueriesConfigMap: string;
  /** Whether there is a Secret with default queries: its name, or empty. */
  monitoringQueriesSecret: string;
  /** Plugins that every cluster uses without naming them. */
  includePlugins: readonly string[];
}

/** What validation needs to know beyond the object. */
export interface AdmissionContext {
  settings: AdmissionSettings;
  /**
   * Builds the pod of the first instance, so that a pod patch can be tried on it. Absent where nothing can be built (at
   * synth); then only the patch's form is checked.
   */
  buildPod?: (cluster: Cluster) => object;
  /**
   * Whether what looks new may be the definition of a cluster that is there: nobody can tell at synth. @default false
   */
  mayExist?: boolean;
}
