import { network } from "../addresses.ts";

export interface ControllerManagerInput {
  kubeconfig: string;
  authorityFile: string;
  authorityKeyFile: string;
  serviceAccountKeyFile: string;
}

/** Command line of kube-controller-manager. */
export function controllerManagerArguments(input: ControllerManagerInput): string[] {
  return [
    ...delegating(input.kubeconfig),
    `--root-ca-file=${input.authorityFile}`,
    `--cluster-signing-cert-file=${input.authorityFile}`,
    `--cluster-signing-key-file=${input.authorityKeyFile}`,
    `--service-account-private-key-file=${input.serviceAccountKeyFile}`,
    "--use-service-account-credentials=true",
    `--cluster-cidr=${network.podSubnet}`,
  ];
}

/** Command line of kube-scheduler. */
export function schedulerArguments(kubeconfig: string): string[] {
  return delegating(kubeconfig);
}

function delegating(kubeconfig: string): string[] {
  return [
    `--kubeconfig=${kubeconfig}`,
    `--authentication-kubeconfig=${kubeconfig}`,
    `--authorization-kubeconfig=${kubeconfig}`,
    "--bind-address=127.0.0.1",
    "--profiling=false",
    // There is one of each; an election only delays the start.
    "--leader-elect=false",
  ];
}
