import type { Logger } from "../../ports/logger.ts";
import type { AdmissionExtension } from "../admission-review.ts";
import type { PluginDirectory } from "./plugin-directory.ts";

const mutatePath = "/mutate-postgresql-cnpg-io-v1-cluster";
const validatePath = "/validate-postgresql-cnpg-io-v1-cluster";

/** The say of plugins in the reviews of Clusters; what it takes is loaded when a Cluster that enables one is reviewed. */
export function reviewByPlugins(options: {
  directory: Pick<PluginDirectory, "load">;
  logger: Logger;
}): AdmissionExtension {
  return async (path, review, outcome) => {
    if (path !== mutatePath && path !== validatePath) return outcome;
    const { spec } = (review.object ?? {}) as {
      spec?: { plugins?: readonly unknown[]; externalClusters?: readonly unknown[] };
    };
    if (!spec?.plugins?.length && !spec?.externalClusters?.length) return outcome;
    const { mutateByPlugins, validateByPlugins } = await import("./admission.ts");
    return path === mutatePath
      ? mutateByPlugins(options, review, outcome)
      : validateByPlugins(options, review, outcome);
  };
}
