import { network } from "../addresses.ts";

/** Where CoreDNS answers whether it is ready. */
export const coreDnsReady = "http://127.0.0.1:8181/ready";

/** Text of the Corefile: cluster names are answered, all others do not exist, as nothing outside can be reached. */
export function renderCorefile(kubeconfig: string): string {
  const zones = `${network.clusterDomain} in-addr.arpa ip6.arpa`;
  return `${zones} {
    bind ${network.controlPlane}
    errors
    ready 127.0.0.1:8181
    kubernetes ${zones} {
        kubeconfig ${kubeconfig}
        pods insecure
        ttl 5
    }
}
. {
    bind ${network.controlPlane}
    errors
    template ANY ANY {
        rcode NXDOMAIN
    }
}
`;
}
