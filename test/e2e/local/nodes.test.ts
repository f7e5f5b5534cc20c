import { rmSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ensureImageArchives, postgresImage } from "../../../images/archives.ts";
import { cutNode, powerOffNode, rejoinNode } from "../../../local/cluster/faults.ts";
import { loadImageArchive } from "../../../local/cluster/load-image.ts";
import { startCluster } from "../../../local/cluster/up.ts";
import { waitFor } from "../../../local/process/wait.ts";
import { ownCluster } from "./own-cluster.ts";

const cluster = ownCluster(`/var/lib/cnpg-ts/e2e-nodes-${process.pid}`);
const { folders, kubectl } = cluster;
const start = (nodes?: number) =>
  startCluster(folders, () => {}, nodes === undefined ? { fsync: false } : { fsync: false, nodes });

const server =
  '$s = IO::Socket::INET->new(LocalPort => 8080, Listen => 9, ReuseAddr => 1); while ($c = $s->accept) { print $c "here\\n"; close $c }';

const pod = (node: string) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: `on-${node}` },
  spec: {
    nodeName: node,
    terminationGracePeriodSeconds: 1,
    containers: [{ name: "main", image: postgresImage("17"), command: ["perl", "-MIO::Socket::INET", "-e", server] }],
  },
});

const podAddress = (node: string) => kubectl.run(["get", "pod", `on-${node}`, "-o", "jsonpath={.status.podIP}"]);

/** What the pod on one node reads from the pod on another; empty when it can't connect within two seconds. */
async function fetchAcross(from: string, to: string): Promise<string> {
  const script = `exec 3<>/dev/tcp/${await podAddress(to)}/8080; cat <&3`;
  return (await kubectl.try(["exec", `on-${from}`, "--", "timeout", "2", "bash", "-c", script])).stdout.trim();
}

beforeAll(async () => {
  const [archive] = await ensureImageArchives({ only: [postgresImage("17")] });
  await start(2);
  await loadImageArchive(archive?.path ?? "");
  await waitFor("default service account", async () => (await kubectl.try(["get", "sa", "default"])).code === 0, {
    timeoutMs: 30_000,
  });
  const items = [pod("node-1"), pod("node-2")];
  await kubectl.run(["apply", "-f", "-"], JSON.stringify({ apiVersion: "v1", kind: "List", items }));
  await kubectl.run(["wait", "--for=condition=Ready", "--timeout=60s", "pod/on-node-1", "pod/on-node-2"]);
}, 900_000);

afterAll(async () => {
  await cluster.command("stop");
  rmSync(folders.root, { recursive: true, force: true });
});

describe("two nodes", () => {
  it("carry traffic between their pods", async () => {
    expect(await fetchAcross("node-1", "node-2")).toBe("here");
    expect(await fetchAcross("node-2", "node-1")).toBe("here");
  });

  it("lose each other when a link is cut, and find each other again", async () => {
    await cutNode(2, folders);
    expect(await fetchAcross("node-1", "node-2")).toBe("");
    await rejoinNode(2, folders);
    await waitFor("traffic", async () => (await fetchAcross("node-1", "node-2")) === "here", { timeoutMs: 30_000 });
  });

  it("survive a power failure of one, which the next start ends", async () => {
    await powerOffNode(2, folders);
    expect(await fetchAcross("node-1", "node-1")).toBe("here");
    expect(await fetchAcross("node-1", "node-2")).toBe("");
    await start();
    await waitFor("traffic", async () => (await fetchAcross("node-1", "node-2")) === "here", { timeoutMs: 60_000 });
  });

  it("can't become one", async () => {
    await expect(start(1)).rejects.toThrow(/has 2 nodes and can't lose any/);
  });
});
