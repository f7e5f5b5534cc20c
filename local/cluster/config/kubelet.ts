import { stringify } from "yaml";
import { network } from "../addresses.ts";
import { containerdSocket } from "./containerd.ts";

export interface KubeletInput {
  authorityFile: string;
  certificateFile: string;
  keyFile: string;
  cgroupParent: string;
  podLogs: string;
  volumePlugins: string;
}

/** Text of the KubeletConfiguration. */
export function renderKubeletConfig(input: KubeletInput): string {
  return stringify({
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: input.authorityFile },
    },
    authorization: { mode: "Webhook" },
    tlsCertFile: input.certificateFile,
    tlsPrivateKeyFile: input.keyFile,
    containerRuntimeEndpoint: `unix://${containerdSocket}`,
    clusterDNS: [network.controlPlane],
    clusterDomain: network.clusterDomain,
    // Pods get the cluster's DNS only; the machine's resolver can't be reached from here.
    resolvConf: "",
    cgroupDriver: "cgroupfs",
    cgroupRoot: input.cgroupParent,
    // Below our own control group, so that limits hold and one folder tells what belongs to us.
    cgroupsPerQOS: true,
    enforceNodeAllocatable: [],
    failCgroupV1: false,
    failSwapOn: false,
    oomScoreAdj: 0,
    podLogsDir: input.podLogs,
    volumePluginDir: input.volumePlugins,
    healthzBindAddress: "127.0.0.1",
    // There is no registry to fetch an image from again, so a full disk must not cost us the loaded ones.
    imageGCHighThresholdPercent: 100,
    imageGCLowThresholdPercent: 99,
    evictionHard: {
      "memory.available": "100Mi",
      "nodefs.available": "1%",
      "nodefs.inodesFree": "1%",
      "imagefs.available": "1%",
      "imagefs.inodesFree": "1%",
    },
    eventRecordQPS: 0,
    // How soon a volume that has grown is noticed.
    syncFrequency: "15s",
    containerLogMaxSize: "20Mi",
    serializeImagePulls: false,
  });
}
