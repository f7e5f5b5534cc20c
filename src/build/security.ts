import type { Cluster } from "../api/generated/cluster.ts";
import type { PodSecurityContext, SeccompProfile, SecurityContext } from "../api/generated/kubernetes.ts";
import type { BuildContext } from "./context.ts";

/** Pod-wide security settings; `undefined` where security context constraints choose them. */
export function podSecurityContext(cluster: Cluster, context: BuildContext): PodSecurityContext | undefined {
  if (context.securityContextConstraints) return undefined;
  const runAsUser = cluster.spec.postgresUID ?? 26;
  const runAsGroup = cluster.spec.postgresGID ?? 26;
  const custom = cluster.spec.podSecurityContext;
  if (custom) return { runAsUser, runAsGroup, seccompProfile: seccompProfile(cluster), ...custom };
  return { runAsUser, runAsGroup, runAsNonRoot: true, fsGroup: runAsGroup, seccompProfile: seccompProfile(cluster) };
}

/** Security settings of each container; the user's fields win one by one. */
export function containerSecurityContext(cluster: Cluster): SecurityContext {
  return {
    capabilities: { drop: ["ALL"] },
    privileged: false,
    runAsNonRoot: true,
    readOnlyRootFilesystem: true,
    allowPrivilegeEscalation: false,
    seccompProfile: seccompProfile(cluster),
    ...cluster.spec.securityContext,
  };
}

function seccompProfile(cluster: Cluster): SeccompProfile {
  return cluster.spec.seccompProfile ?? { type: "RuntimeDefault" };
}
