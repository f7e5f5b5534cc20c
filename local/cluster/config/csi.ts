import { driverName, expandableStorageClass } from "../../csi/names.ts";

/** Command lines of the two programs that turn claims into calls of the driver; they run beside the control plane. */
export function csiControllerArguments(
  kubeconfig: string,
  socket: string,
): { provisioner: string[]; resizer: string[] } {
  const common = [`--kubeconfig=${kubeconfig}`, `--csi-address=${socket}`, "--kube-api-qps=50", "--kube-api-burst=100"];
  return {
    provisioner: [...common, "--default-fstype=xfs", "--strict-topology", "--retry-interval-max=5s"],
    resizer: [...common, "--retry-interval-max=5s"],
  };
}

/** What the cluster has to know of the driver: how it is used, and its StorageClass. */
export function csiManifests(): object[] {
  return [
    {
      apiVersion: "storage.k8s.io/v1",
      kind: "CSIDriver",
      metadata: { name: driverName },
      spec: {
        attachRequired: false,
        podInfoOnMount: false,
        fsGroupPolicy: "File",
        volumeLifecycleModes: ["Persistent"],
      },
    },
    {
      apiVersion: "storage.k8s.io/v1",
      kind: "StorageClass",
      metadata: { name: expandableStorageClass },
      provisioner: driverName,
      // The volume is made on the node that its first pod goes to.
      volumeBindingMode: "WaitForFirstConsumer",
      reclaimPolicy: "Delete",
      allowVolumeExpansion: true,
    },
  ];
}
