import { phases } from "../../src/api/phases.ts";
import type { ClusterView, PodView } from "./wait-healthy.ts";

/** What differs between the local Kubernetes and one of the user's. */
export interface ClosingWords {
  /** Commands that lead kubectl to the cluster. */
  access: readonly string[];
  /** How kubectl is called then. */
  kubectl: string;
  /** Commands that end what was started. */
  end: readonly string[];
}

/** How to talk to the cluster and what to try with it, ready to be pasted. */
export function renderNextSteps(
  cluster: ClusterView,
  pods: readonly PodView[],
  { access, kubectl, end }: ClosingWords,
): string[] {
  const { name, namespace } = cluster.metadata;
  const primary = cluster.status?.currentPrimary ?? `${name}-1`;
  const standby = pods.map((pod) => pod.metadata.name).find((pod) => pod !== primary) ?? `${name}-2`;
  const switchover = JSON.stringify({
    status: {
      targetPrimary: standby,
      phase: phases.switchover,
      phaseReason: `Switching over to ${standby}`,
    },
  });
  const scale = JSON.stringify({ spec: { instances: cluster.spec.instances + 1 } });
  return [
    "Connect:",
    ...access.map((line) => `  ${line}`),
    `  ${kubectl} -n ${namespace} exec -it ${primary} -c postgres -- psql app`,
    "",
    "Then try:",
    `  ${kubectl} -n ${namespace} get cluster ${name} -w                 # watch it, in another terminal`,
    `  ${kubectl} -n ${namespace} delete pod ${primary}                  # kill the primary: a standby takes over`,
    `  ${kubectl} -n ${namespace} patch cluster ${name} --type merge -p '${scale}'   # one more instance`,
    `  ${kubectl} -n ${namespace} patch cluster ${name} --subresource status --type merge \\`,
    `    -p '${switchover}'   # switchover`,
    ...end.map((line) => `  ${line}`),
  ];
}
