/**
 * Addresses of the local cluster. Its networks exist in namespaces of their own, so every clone uses the same ones
 * and the machine's own networks don't matter.
 */
export const network = {
  bridge: "cnpg0",
  /** Control plane: API server, DNS. Also the nodes' default gateway. */
  controlPlane: "10.213.0.1",
  prefix: 24,
  apiPort: 6443,
  s3Port: 8333,
  podSubnet: "10.244.0.0/16",
  serviceSubnet: "10.96.0.0/16",
  /** First address of the service subnet: the `kubernetes` Service. */
  kubernetesService: "10.96.0.1",
  clusterDomain: "cluster.local",
} as const;

export interface NodeAddresses {
  name: string;
  index: number;
  address: string;
  podSubnet: string;
  /** The node's end of the link on the control plane's side. */
  link: string;
}

/** Addresses of the n-th node, from 1. */
export function nodeAddresses(index: number): NodeAddresses {
  if (!Number.isInteger(index) || index < 1 || index > 100) throw new Error(`node ${index} is not between 1 and 100`);
  return {
    name: `node-${index}`,
    index,
    address: `10.213.0.${10 + index}`,
    podSubnet: `10.244.${index}.0/24`,
    link: `node${index}`,
  };
}
