import { certificatePaths } from "./certificates.ts";

export interface EtcdOptions {
  dataFolder: string;
  /** Path of the unix socket for clients, at most 100 characters; one for peers is made in the working folder. */
  socket: string;
  /** Whether every write reaches the disk before it is acknowledged. */
  fsync: boolean;
}

/** Command line of etcd. It listens on unix sockets only: no port to choose, nobody else can connect. */
export function etcdArguments({ dataFolder, socket, fsync }: EtcdOptions): string[] {
  // Advertised addresses must look like host:port, also when they name a socket. Nobody dials them: there
  // is one member, and kube-apiserver is told the real path.
  const peer = "unix://etcd-peer:1";
  return [
    "--name=local",
    `--data-dir=${dataFolder}`,
    `--listen-client-urls=unix://${socket}`,
    `--advertise-client-urls=unix://etcd-client:1`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=local=${peer}`,
    "--log-level=warn",
    ...(fsync ? [] : ["--unsafe-no-fsync"]),
  ];
}

export interface ApiServerOptions {
  certificates: string;
  etcdSocket: string;
  bindAddress: string;
  port: number;
  serviceSubnet: string;
  /** The address other machines reach it by; none for a server that only loopback clients use. */
  advertiseAddress?: string;
  /** Whether a controller manager will create the default service accounts; pods can't be created before. */
  serviceAccounts: boolean;
}

/** Command line of kube-apiserver. */
export function apiServerArguments(options: ApiServerOptions): string[] {
  const files = certificatePaths(options.certificates);
  return [
    `--etcd-servers=unix://${options.etcdSocket}`,
    `--bind-address=${options.bindAddress}`,
    `--secure-port=${options.port}`,
    ...(options.advertiseAddress === undefined
      ? ["--endpoint-reconciler-type=none"]
      : [
          `--advertise-address=${options.advertiseAddress}`,
          // Webhooks are called on their pods: the machine of the API server has no kube-proxy.
          "--enable-aggregator-routing=true",
        ]),
    `--service-cluster-ip-range=${options.serviceSubnet}`,
    "--authorization-mode=Node,RBAC",
    "--enable-admission-plugins=NodeRestriction",
    ...(options.serviceAccounts ? [] : ["--disable-admission-plugins=ServiceAccount"]),
    "--allow-privileged=true",
    "--profiling=false",
    `--client-ca-file=${files.authority}`,
    `--tls-cert-file=${files.serverCertificate}`,
    `--tls-private-key-file=${files.serverKey}`,
    `--token-auth-file=${files.tokens}`,
    `--kubelet-client-certificate=${files.kubeletClientCertificate}`,
    `--kubelet-client-key=${files.kubeletClientKey}`,
    // By name would need a resolver that knows the nodes.
    "--kubelet-preferred-address-types=InternalIP",
    "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
    `--service-account-signing-key-file=${files.serviceAccountKey}`,
    `--service-account-key-file=${files.serviceAccountPublicKey}`,
  ];
}
