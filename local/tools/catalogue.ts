/** A program that is built from a pinned Go module in this folder. */
export interface GoTool {
  name: string;
  /** Folder with the go.mod and go.sum that pin it. */
  module: string;
  package: string;
  tags?: string;
  /** Values set at link time. */
  variables?: Record<string, string>;
  /** How long a build takes on two cores with cold caches, for the progress line. */
  about: string;
}

const kubernetesVersion = {
  "k8s.io/component-base/version.gitVersion": "v1.36.3",
  "k8s.io/component-base/version.gitMajor": "1",
  "k8s.io/component-base/version.gitMinor": "36",
  "k8s.io/component-base/version.gitTreeState": "clean",
};

function kubernetes(name: string, about: string): GoTool {
  return { name, module: "kubernetes", package: `k8s.io/kubernetes/cmd/${name}`, variables: kubernetesVersion, about };
}

function containerd(name: string, about: string): GoTool {
  return {
    name,
    module: "containerd",
    package: `github.com/containerd/containerd/v2/cmd/${name}`,
    tags: "no_btrfs no_zfs no_devmapper",
    variables: { "github.com/containerd/containerd/v2/version.Version": "2.2.9" },
    about,
  };
}

/** Every program of the local Kubernetes, in the order in which they are built. */
export const goTools = [
  { name: "etcd", module: "etcd", package: "go.etcd.io/etcd/server/v3", about: "about 30 s" },
  kubernetes("kube-apiserver", "about 4 minutes"),
  kubernetes("kubectl", "about 40 s"),
  kubernetes("kube-controller-manager", "about 1 minute"),
  kubernetes("kube-scheduler", "about 10 s"),
  kubernetes("kubelet", "about 30 s"),
  kubernetes("kube-proxy", "about 20 s"),
  containerd("containerd", "about 1 minute"),
  containerd("ctr", "about 10 s"),
  containerd("containerd-shim-runc-v2", "about 10 s"),
  // In the module of Kubernetes too: most of what they are made of is compiled already then.
  { name: "coredns", module: "kubernetes", package: "./dns", about: "about 20 s" },
  {
    name: "local-path-provisioner",
    module: "kubernetes",
    package: "github.com/rancher/local-path-provisioner",
    about: "about 20 s",
  },
  // Pinned to what Kubernetes is made of, and after it: only their own few packages are left to compile.
  {
    name: "csi-provisioner",
    module: "csi",
    package: "github.com/kubernetes-csi/external-provisioner/v5/cmd/csi-provisioner",
    about: "about 20 s",
  },
  {
    name: "csi-resizer",
    module: "csi",
    package: "github.com/kubernetes-csi/external-resizer/v2/cmd/csi-resizer",
    about: "about 10 s",
  },
] as const satisfies readonly GoTool[];

/** Programs that tests alone run. */
export const testTools = [
  {
    name: "fake-gcs-server",
    module: "fake-gcs-server",
    package: "github.com/fsouza/fake-gcs-server",
    about: "about 1 minute",
  },
] as const satisfies readonly GoTool[];

export const allTools = [...goTools, ...testTools] as const;

export type GoToolName = (typeof allTools)[number]["name"];

/** Arguments of `go build` for a tool, writing to that file. */
export function buildArguments(tool: GoTool, output: string): string[] {
  const variables = Object.entries(tool.variables ?? {}).map(([key, value]) => `-X ${key}=${value}`);
  return [
    "build",
    "-trimpath",
    ...(tool.tags === undefined ? [] : ["-tags", tool.tags]),
    "-ldflags",
    ["-s -w", ...variables].join(" "),
    "-o",
    output,
    tool.package,
  ];
}
