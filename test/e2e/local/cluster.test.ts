import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ensureImageArchives, postgresImage } from "../../../images/archives.ts";
import { enterControlPlane, enterNode } from "../../../local/cluster/enter.ts";
import { nodeFolders } from "../../../local/cluster/folders.ts";
import { loadImageArchive } from "../../../local/cluster/load-image.ts";
import { loopDevicesUnder } from "../../../local/cluster/loop-devices.ts";
import { startCluster } from "../../../local/cluster/up.ts";
import { freezeVolume } from "../../../local/cluster/volume-faults.ts";
import { expandableStorageClass } from "../../../local/csi/names.ts";
import { isPortFree } from "../../../local/process/free-port.ts";
import { run } from "../../../local/process/run.ts";
import { waitFor } from "../../../local/process/wait.ts";
import { ownCluster } from "./own-cluster.ts";

const cluster = ownCluster(`/var/lib/cnpg-ts/e2e-${process.pid}`);
const { folders, kubectl } = cluster;
const { volumes, loopFiles } = nodeFolders(folders, "node-1");
const linksBefore = readdirSync("/sys/class/net").sort();
const report: string[] = [];
const start = () => startCluster(folders, (line) => report.push(line), { fsync: false });

const objects = [
  {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { name: "data" },
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
  },
  {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { name: "grows" },
    spec: {
      accessModes: ["ReadWriteOnce"],
      storageClassName: expandableStorageClass,
      resources: { requests: { storage: "320Mi" } },
    },
  },
  {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "front" },
    spec: { selector: { app: "web" }, ports: [{ port: 80, targetPort: 8080 }] },
  },
  {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web", labels: { app: "web" } },
    spec: {
      terminationGracePeriodSeconds: 1,
      securityContext: { runAsUser: 26, runAsGroup: 26, fsGroup: 26 },
      containers: [
        {
          name: "main",
          image: postgresImage("17"),
          command: [
            "perl",
            "-MIO::Socket::INET",
            "-e",
            '$s = IO::Socket::INET->new(LocalPort => 8080, Listen => 9, ReuseAddr => 1); while ($c = $s->accept) { print $c "served\\n"; close $c }',
          ],
          readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 },
          resources: { limits: { memory: "64Mi" } },
          volumeMounts: [
            { name: "data", mountPath: "/data" },
            { name: "grows", mountPath: "/grows" },
          ],
        },
      ],
      volumes: ["data", "grows"].map((name) => ({ name, persistentVolumeClaim: { claimName: name } })),
    },
  },
];

const exec = (...command: string[]) => kubectl.run(["exec", "web", "--", ...command]);
const fetchLine = (host: string) => ["bash", "-c", `exec 3<>/dev/tcp/${host}/80; cat <&3`];
const serves = async () => (await kubectl.try(["exec", "web", "--", ...fetchLine("front")])).stdout === "served\n";
const podServes = () => waitFor("the pod serving through its Service", serves, { timeoutMs: 60_000, everyMs: 500 });

beforeAll(async () => {
  const [archive] = await ensureImageArchives({ only: [postgresImage("17")] });
  await start();
  await loadImageArchive(archive?.path ?? "");
  // A pod can't be created before the controllers have made its namespace's service account.
  await waitFor("default service account", async () => (await kubectl.try(["get", "sa", "default"])).code === 0, {
    timeoutMs: 30_000,
  });
  await kubectl.run(["apply", "-f", "-"], JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }));
  await podServes();
}, 900_000);

afterAll(async () => {
  await cluster.command("stop");
  rmSync(folders.root, { recursive: true, force: true });
});

describe("the local cluster", () => {
  it("has a ready node and a default storage class", async () => {
    expect(await kubectl.run(["get", "nodes", "--no-headers"])).toMatch(/^node-1 +Ready /);
    expect(await kubectl.run(["get", "storageclass", "--no-headers"])).toMatch(/^standard \(default\) .*WaitForFirst/m);
  });

  it("holds a volume to its size, and lets it grow under the pod", async () => {
    await exec("sh", "-c", "echo kept > /grows/file");
    const write = "fallocate -l 400M /grows/large";
    await expect(exec("sh", "-c", write)).rejects.toThrow(/No space left/);
    const size = { spec: { resources: { requests: { storage: "640Mi" } } } };
    await kubectl.run(["patch", "pvc", "grows", "-p", JSON.stringify(size)]);
    const capacity = () => kubectl.run(["get", "pvc", "grows", "-o", "jsonpath={.status.capacity.storage}"]);
    await waitFor("growth of the volume", async () => (await capacity()) === "640Mi", { timeoutMs: 240_000 });
    await exec("sh", "-c", write);
    expect(await exec("cat", "/grows/file")).toBe("kept\n");
    await exec("rm", "/grows/large");
  });

  it("binds a claim to a folder that any user may own", async () => {
    expect(await kubectl.run(["get", "pvc", "data", "-o", "jsonpath={.status.phase}"])).toBe("Bound");
    await exec("sh", "-c", "echo kept > /data/file");
    const [folder = ""] = readdirSync(volumes);
    expect(readFileSync(`${volumes}/${folder}/file`, "utf8")).toBe("kept\n");
  });

  it("answers cluster names, short ones too, and denies others", async () => {
    const address = (await kubectl.run(["get", "service", "front", "-o", "jsonpath={.spec.clusterIP}"])).trim();
    expect(await exec("getent", "hosts", "front")).toContain(address);
    expect(await exec("getent", "hosts", "kubernetes.default.svc.cluster.local")).toContain("10.96.0.1");
    await expect(exec("getent", "hosts", "example.org")).rejects.toThrow(/exit code 2/);
  });

  it("routes a Service to its pod, from that pod itself and from beside the control plane", async () => {
    expect(await exec(...fetchLine("front"))).toBe("served\n");
    const [command = "", ...args] = [...enterControlPlane(folders), ...fetchLine("front")];
    expect(await run(command, args)).toBe("served\n");
  });

  it("holds a container to its memory limit", async () => {
    const files = ["memory.max", "memory/memory.limit_in_bytes"].map((file) => `/sys/fs/cgroup/${file}`);
    const limit = await exec("sh", "-c", `cat ${files.join(" ")} 2>/dev/null || true`);
    expect(Number(limit)).toBe(64 * 1024 * 1024);
  });

  it("imports the same archive once", async () => {
    const [archive] = await ensureImageArchives({ only: [postgresImage("17")] });
    expect(await loadImageArchive(archive?.path ?? "")).toBe(false);
  });

  it("opens nothing but one loopback port and no link on the machine", async () => {
    expect(await isPortFree(cluster.apiPort() ?? 0)).toBe(false);
    expect(readdirSync("/sys/class/net").sort()).toEqual(linksBefore);
    for (const port of [6443, 10250, 2379]) expect(await isPortFree(port)).toBe(true);
  });
});

describe("a second start", () => {
  it("leaves everything as it is", async () => {
    const before = cluster.processes();
    const restarts = await kubectl.run([
      "get",
      "pod",
      "web",
      "-o",
      "jsonpath={.status.containerStatuses[0].restartCount}",
    ]);
    await start();
    expect(before.filter((pid) => !cluster.processes().includes(pid))).toEqual([]);
    expect(await kubectl.run(["get", "pod", "web", "-o", "jsonpath={.status.containerStatuses[0].restartCount}"])).toBe(
      restarts,
    );
  });

  it("brings back a program that died", async () => {
    const [command = "", ...args] = [...enterNode("node-1", folders), "pkill", "-KILL", "-x", "kubelet"];
    await run(command, args);
    await start();
    const [, ...look] = [...enterNode("node-1", folders), "pgrep", "-x", "kubelet"];
    expect((await run(command, look)).trim()).toMatch(/^\d+$/);
  });

  it("brings everything back, with its data, after all was killed", async () => {
    for (const pid of cluster.processes()) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It went with its parent.
      }
    }
    await waitFor("end of all processes", async () => cluster.processes().length === 0, { timeoutMs: 20_000 });
    await start();
    await podServes();
    expect(await exec("cat", "/data/file", "/grows/file")).toBe("kept\nkept\n");
    expect(await exec(...fetchLine("front"))).toBe("served\n");
  });
});

describe("stopping", () => {
  it("removes a volume's folder or file with its claim first", async () => {
    await kubectl.run(["delete", "pod/web", "pvc/data", "pvc/grows", "service/front"]);
    const left = () => [...readdirSync(volumes), ...readdirSync(loopFiles), ...loopDevicesUnder(folders.root)];
    await waitFor("removal of the volumes", async () => left().length === 0, { timeoutMs: 120_000 });
  });

  it("leaves no process, mount, loop device, link or control group, even of a frozen volume in use", async () => {
    const used = objects.filter(({ metadata: { name } }) => name !== "front");
    await kubectl.run(["apply", "-f", "-"], JSON.stringify({ apiVersion: "v1", kind: "List", items: used }));
    await kubectl.run(["wait", "--for=condition=Ready", "pod/web", "--timeout=60s"]);
    const volume = await kubectl.run(["get", "pv", "-o", "jsonpath={.items[*].spec.csi.volumeHandle}"]);
    await freezeVolume(volume.trim(), folders);
    // Waits for the disk, and can't be killed while it does.
    await exec("sh", "-c", "(echo stuck > /grows/stuck) > /dev/null 2>&1 &");
    const port = cluster.apiPort() ?? 0;
    const { code, output } = await cluster.command("stop");
    expect(output).toContain("The local cluster is stopped.");
    expect(code).toBe(0);
    expect(cluster.processes()).toEqual([]);
    expect(cluster.cgroups()).toEqual([]);
    expect(loopDevicesUnder(folders.root)).toEqual([]);
    expect(readFileSync("/proc/self/mountinfo", "utf8")).not.toContain(folders.root);
    expect(readdirSync("/sys/class/net").sort()).toEqual(linksBefore);
    expect(await isPortFree(port)).toBe(true);
    for (const folder of ["/run/netns", "/var/log/pods", "/var/log/containers", "/var/lib/kubelet", "/var/lib/cni"]) {
      expect([folder, existsSync(folder)]).toEqual([folder, false]);
    }
  });

  it("twice says that nothing ran", async () => {
    const { code, output } = await cluster.command("stop");
    expect(output).toContain("was not running");
    expect(code).toBe(0);
  });
});
