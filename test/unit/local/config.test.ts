import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { network, nodeAddresses } from "../../../local/cluster/addresses.ts";
import { nodeCgroup, parseHierarchies } from "../../../local/cluster/cgroups.ts";
import { renderCniConfig } from "../../../local/cluster/config/cni.ts";
import { renderContainerdConfig } from "../../../local/cluster/config/containerd.ts";
import { renderCorefile } from "../../../local/cluster/config/core-dns.ts";
import { renderKubeProxyConfig } from "../../../local/cluster/config/kube-proxy.ts";
import { renderKubeletConfig } from "../../../local/cluster/config/kubelet.ts";
import { renderStorageConfig, storageManifests } from "../../../local/cluster/config/storage.ts";
import { apiServerArguments, etcdArguments } from "../../../local/control-plane/arguments.ts";

const apiServer = {
  certificates: "/pki",
  etcdSocket: "/s/etcd",
  bindAddress: "127.0.0.1",
  port: 20_000,
  serviceSubnet: "10.0.0.0/24",
  serviceAccounts: false,
};

describe("the control plane's command lines", () => {
  it("let etcd skip the disk only when asked to", () => {
    const options = { dataFolder: "/d", socket: "/s/etcd" };
    expect(etcdArguments({ ...options, fsync: false })).toContain("--unsafe-no-fsync");
    expect(etcdArguments({ ...options, fsync: true })).not.toContain("--unsafe-no-fsync");
  });

  it("let etcd listen on sockets only", () => {
    const urls = etcdArguments({ dataFolder: "/d", socket: "/s/etcd", fsync: true }).filter((each) =>
      /urls=/.test(each),
    );
    expect(urls).not.toHaveLength(0);
    for (const url of urls) expect(url).toContain("unix://");
  });

  it("let an API server without controllers accept pods", () => {
    expect(apiServerArguments(apiServer)).toContain("--disable-admission-plugins=ServiceAccount");
    expect(apiServerArguments(apiServer)).toContain("--endpoint-reconciler-type=none");
  });

  it("make a full one advertise itself and call webhooks on their pods", () => {
    const args = apiServerArguments({ ...apiServer, serviceAccounts: true, advertiseAddress: "10.213.0.1" });
    expect(args).toContain("--advertise-address=10.213.0.1");
    expect(args).toContain("--enable-aggregator-routing=true");
    expect(args).not.toContain("--disable-admission-plugins=ServiceAccount");
  });
});

describe("addresses", () => {
  it("differ from node to node and stay in the cluster's subnets", () => {
    const [one, two] = [nodeAddresses(1), nodeAddresses(2)];
    expect(one).toEqual({
      name: "node-1",
      index: 1,
      address: "10.213.0.11",
      podSubnet: "10.244.1.0/24",
      link: "node1",
    });
    expect(new Set([one.address, two.address, network.controlPlane]).size).toBe(3);
    expect(two.podSubnet).not.toBe(one.podSubnet);
  });

  it.each([0, -1, 1.5, 101])("refuse node %s", (index) => {
    expect(() => nodeAddresses(index)).toThrow(/between 1 and 100/);
  });
});

describe("a node's configuration", () => {
  it("runs on both versions of control groups, below the cluster's own", () => {
    const config = parse(
      renderKubeletConfig({
        authorityFile: "/ca",
        certificateFile: "/crt",
        keyFile: "/key",
        cgroupParent: nodeCgroup("/var/lib/cnpg-ts/0123abcd", "node-1"),
        podLogs: "/logs",
        volumePlugins: "/plugins",
      }),
    );
    expect(config).toMatchObject({
      failCgroupV1: false,
      cgroupDriver: "cgroupfs",
      cgroupRoot: "/cnpg-ts-0123abcd/node-1",
      imageGCHighThresholdPercent: 100,
      authentication: { anonymous: { enabled: false } },
      clusterDNS: [network.controlPlane],
    });
  });

  it("gives containerd its own places, quoted", () => {
    const text = renderContainerdConfig({ root: '/a "b"', cniConfig: "/cni", cniPlugins: ["/x", "/y"] });
    expect(text).toContain('root = "/a \\"b\\""');
    expect(text).toContain('bin_dirs = ["/x", "/y"]');
  });

  it("hands out pod addresses of the node's subnet", () => {
    const { plugins } = JSON.parse(renderCniConfig("10.244.1.0/24", "/addresses"));
    expect(plugins[0].ipam).toMatchObject({ ranges: [[{ subnet: "10.244.1.0/24" }]], dataDir: "/addresses" });
  });

  it("lets kube-proxy leave the machine's connection table alone", () => {
    expect(parse(renderKubeProxyConfig("node-1", "/kubeconfig"))).toMatchObject({
      mode: "nftables",
      hostnameOverride: "node-1",
      conntrack: { maxPerCore: 0, min: 0 },
    });
  });
});

describe("cluster services", () => {
  it("answer cluster names and deny all others at once", () => {
    const text = renderCorefile("/kubeconfig");
    expect(text).toContain("kubernetes cluster.local");
    expect(text).toContain("rcode NXDOMAIN");
    expect(text).not.toContain("forward");
  });

  it("offer one default storage class, bound at first use", () => {
    const classes = storageManifests().filter((each) => (each as { kind: string }).kind === "StorageClass");
    expect(classes).toMatchObject([
      {
        metadata: { name: "standard", annotations: { "storageclass.kubernetes.io/is-default-class": "true" } },
        volumeBindingMode: "WaitForFirstConsumer",
        allowVolumeExpansion: false,
      },
    ]);
  });

  it("keep volumes of each node in its own folder", () => {
    const config = JSON.parse(renderStorageConfig(new Map([[nodeAddresses(2), "/nodes/node-2/volumes"]])));
    expect(config.nodePathMap).toEqual([{ node: "node-2", paths: ["/nodes/node-2/volumes"] }]);
  });
});

describe("control group hierarchies", () => {
  it("are found in both versions", () => {
    const mounts = [
      "tmpfs /sys/fs/cgroup tmpfs rw 0 0",
      "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0",
      "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0",
      "",
    ];
    expect(parseHierarchies(mounts.join("\n"))).toEqual([
      { mountPoint: "/sys/fs/cgroup/memory", version: 1 },
      { mountPoint: "/sys/fs/cgroup/unified", version: 2 },
    ]);
  });
});
