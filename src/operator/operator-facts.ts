import { hostname } from "node:os";
import { resources } from "../kube/resources.ts";
import type { OperatorFacts } from "../plan/cluster/observed.ts";
import { readManagerFiles } from "./manager-files.ts";
import { createOperatorIdentity } from "./operator-identity.ts";
import type { OperatorOptions } from "./operator-options.ts";
import type { OperatorSettings } from "./settings.ts";

/** Finds out, once at the start, what is true of this operator and of the API server. */
export async function gatherFacts(options: OperatorOptions, settings: OperatorSettings, signal: AbortSignal) {
  const { api, clock, flags } = options;
  const [volumeSnapshots, securityContextConstraints, managers, identity] = await Promise.all([
    api.serves(resources.volumeSnapshots, { signal }),
    api.serves(
      {
        group: "security.openshift.io",
        version: "v1",
        kind: "SecurityContextConstraints",
        plural: "securitycontextconstraints",
        namespaced: false,
      },
      { signal },
    ),
    readManagerFiles({
      runtimeFolder: options.runtimeFolder ?? "/runtime",
      operatorFolder: options.operatorFolder ?? "/operator",
      program: process.argv[1] ?? process.execPath,
      arch: process.arch,
    }),
    options.identity ?? createOperatorIdentity(hostname(), clock.now()),
  ]);
  const operator: OperatorFacts = {
    context: {
      ...settings.context,
      securityContextConstraints,
      ...(flags.logFieldLevel ? { logFieldLevel: flags.logFieldLevel } : {}),
      ...(flags.logFieldTimestamp ? { logFieldTimestamp: flags.logFieldTimestamp } : {}),
    },
    commitHash: managers.commit,
    managerHash: managers.hash,
    architectures: managers.architectures,
    certificateFingerprint: identity.fingerprint,
    onlineUpdateEnabled: settings.inPlaceManagerUpdates,
    drainTaints: settings.drainTaints,
    instancesRolloutDelayMs: settings.instancesRolloutDelayMs,
    clustersRolloutDelayMs: settings.clustersRolloutDelayMs,
  };
  return { operator, identity, managers, volumeSnapshots };
}
