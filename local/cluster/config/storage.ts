import type { NodeAddresses } from "../addresses.ts";
import { nodeImage, volumeProgram } from "../image/pack.ts";

/** Namespace of the volume provisioner's helper pods. */
export const storageNamespace = "local-path-storage";
/** Name of its ConfigMap. */
export const storageConfigMap = "local-path-config";
/** StorageClass of claims that name none. */
export const defaultStorageClass = "standard";
const provisionerName = "rancher.io/local-path";
const serviceAccount = "local-path-provisioner";

/** Text of the provisioner's own configuration file. */
export function renderStorageConfig(volumeFolders: ReadonlyMap<NodeAddresses, string>): string {
  return JSON.stringify(
    {
      nodePathMap: [...volumeFolders].map(([node, folder]) => ({ node: node.name, paths: [folder] })),
      setupCommand: volumeProgram,
      teardownCommand: volumeProgram,
    },
    null,
    2,
  );
}

/** Arguments of local-path-provisioner, run beside the control plane. */
export function storageArguments(configFile: string, helperPodFile: string, kubeconfig: string): string[] {
  return [
    "start",
    "--config",
    configFile,
    "--helper-pod-file",
    helperPodFile,
    "--kubeconfig",
    kubeconfig,
    "--namespace",
    storageNamespace,
    "--configmap-name",
    storageConfigMap,
    "--service-account-name",
    serviceAccount,
    "--provisioner-name",
    provisionerName,
    "--helper-image",
    nodeImage,
  ];
}

/** Text of the pod that makes or removes a volume's folder; the provisioner fills in the rest. */
export function renderHelperPod(): string {
  return JSON.stringify(
    {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "volume" },
      spec: {
        terminationGracePeriodSeconds: 0,
        containers: [{ name: "volume", image: nodeImage, imagePullPolicy: "IfNotPresent" }],
      },
    },
    null,
    2,
  );
}

/** Objects that the provisioner needs, and the default StorageClass. */
export function storageManifests(): object[] {
  return [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: storageNamespace } },
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: serviceAccount, namespace: storageNamespace } },
    {
      apiVersion: "storage.k8s.io/v1",
      kind: "StorageClass",
      metadata: { name: defaultStorageClass, annotations: { "storageclass.kubernetes.io/is-default-class": "true" } },
      provisioner: provisionerName,
      volumeBindingMode: "WaitForFirstConsumer",
      reclaimPolicy: "Delete",
      allowVolumeExpansion: false,
    },
  ];
}
