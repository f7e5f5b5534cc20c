import { nodeImage } from "../image/pack.ts";

export interface ContainerdInput {
  root: string;
  cniConfig: string;
  /** Folders with the CNI plugins. */
  cniPlugins: readonly string[];
}

/** Where containerd listens, in each node's own /run. */
export const containerdSocket = "/run/containerd/containerd.sock";

/** Text of containerd's config.toml. */
export function renderContainerdConfig({ root, cniConfig, cniPlugins }: ContainerdInput): string {
  const text = (value: string) => JSON.stringify(value);
  return `version = 3
root = ${text(root)}
state = "/run/containerd"

[grpc]
address = ${text(containerdSocket)}

[plugins.'io.containerd.cri.v1.images']
snapshotter = "overlayfs"

[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = ${text(nodeImage)}

[plugins.'io.containerd.cri.v1.runtime']
# A machine may forbid lower out-of-memory scores even to root.
restrict_oom_score_adj = true

[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = [${cniPlugins.map(text).join(", ")}]
conf_dir = ${text(cniConfig)}

[plugins.'io.containerd.cri.v1.runtime'.containerd]
default_runtime_name = "runc"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
SystemdCgroup = false
`;
}
