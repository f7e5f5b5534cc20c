import { boolean, listOf, object, string } from "../parts/builders.ts";
import { podMonitor } from "../shared/monitoring.ts";
import { configMapKey, secretKey } from "../shared/references.ts";

/** `spec.monitoring`: which metrics there are and how they are scraped. */
export const monitoring = object("Which metrics there are and how Prometheus scrapes them.", {
  ...podMonitor,
  customQueriesConfigMap: listOf("ConfigMaps with queries that become metrics.", configMapKey("A key with queries.")),
  customQueriesSecret: listOf("Secrets with queries that become metrics.", secretKey("A key with queries.")),
  disableDefaultQueries: boolean("Leave out the operator's own queries.", { default: false }),
  metricsQueriesTTL: string("How long the results of queries are kept before they run again, such as 30s."),
});
