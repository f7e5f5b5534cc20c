import { stringify } from "yaml";
import { network } from "../addresses.ts";

/** Text of the KubeProxyConfiguration. */
export function renderKubeProxyConfig(node: string, kubeconfig: string): string {
  return stringify({
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    mode: "nftables",
    hostnameOverride: node,
    clientConnection: { kubeconfig },
    clusterCIDR: network.podSubnet,
    healthzBindAddress: "127.0.0.1:10256",
    metricsBindAddress: "127.0.0.1:10249",
    oomScoreAdj: 0,
    // The table of tracked connections belongs to the whole machine: leave its size alone.
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: "0s", tcpCloseWaitTimeout: "0s" },
  });
}
