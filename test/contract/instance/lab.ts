import { execFileSync } from "node:child_process";
import { createHash, X509Certificate } from "node:crypto";
import {
  chownSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundleProgram, programs } from "../../../images/bundle.ts";
import { claimFolder, removeAbandoned } from "../../../local/control-plane/abandoned.ts";
import { type ControlPlane, startControlPlane } from "../../../local/control-plane/control-plane.ts";
import { choosePort } from "../../../local/process/free-port.ts";
import { isAlive, type ProcessIdentity } from "../../../local/process/identity.ts";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import { reachableNode } from "../../support/reachable-node.ts";
import { createTestAuthority, type TestAuthority } from "../../support/tls-files.ts";
import { clusterName, LabInstance, namespace } from "./lab-instance.ts";
import { SwitchProxy } from "./switch-proxy.ts";

export { clusterName, LabInstance, type RunOptions } from "./lab-instance.ts";
export { until } from "./until.ts";

function binFolder(): string {
  const [newest] = readdirSync("/usr/lib/postgresql").sort((a, b) => Number(b) - Number(a));
  if (!newest) throw new Error("no PostgreSQL under /usr/lib/postgresql: install the postgresql package");
  return `/usr/lib/postgresql/${newest}/bin`;
}

function postgresUser(): { uid: number; gid: number } {
  const id = (flag: string) => Number(execFileSync("id", [flag, "postgres"]).toString());
  return { uid: id("-u"), gid: id("-g") };
}

/** Takes away what a test that was killed had mounted, so that its folder can go. */
function unmountAbandoned(): void {
  for (const line of readFileSync("/proc/mounts", "utf8").split("\n")) {
    const place = line.split(" ")[1] ?? "";
    const folder = place.startsWith(`${tmpdir()}/lab-`)
      ? place.slice(0, place.indexOf("/", tmpdir().length + 1))
      : undefined;
    if (folder === undefined || !existsSync(join(folder, "owner.json"))) continue;
    const owner = JSON.parse(readFileSync(join(folder, "owner.json"), "utf8")) as ProcessIdentity;
    if (!isAlive(owner)) execFileSync("umount", ["--lazy", place]);
  }
}

export interface LabOptions {
  instances?: number;
  spec?: Partial<Cluster["spec"]>;
}

/** A real API server with one Cluster, and the instance managers of its pods as processes on this host. */
export class Lab {
  readonly plane: ControlPlane;
  readonly root: string;
  readonly proxy: SwitchProxy;
  readonly bundle: string;
  readonly node: string;
  readonly user = postgresUser();
  readonly binDir = binFolder();
  readonly #authority: TestAuthority;
  readonly #instances = new Map<string, LabInstance>();

  private constructor(plane: ControlPlane, root: string, proxy: SwitchProxy, authority: TestAuthority) {
    this.plane = plane;
    this.root = root;
    this.proxy = proxy;
    this.#authority = authority;
    this.bundle = join(root, "manager.cjs");
    this.node = reachableNode(root);
  }

  static async start(options: LabOptions = {}): Promise<Lab> {
    const plane = await startControlPlane();
    const undo: (() => Promise<unknown>)[] = [() => plane.stop()];
    try {
      unmountAbandoned();
      removeAbandoned(tmpdir(), "lab-");
      const root = mkdtempSync(join(tmpdir(), "lab-"));
      claimFolder(root);
      undo.unshift(async () => rmSync(root, { recursive: true, force: true }));
      const authority = await createTestAuthority();
      undo.unshift(() => authority.remove());
      const proxy = await SwitchProxy.start();
      undo.unshift(() => proxy.close());
      const lab = new Lab(plane, root, proxy, authority);
      await lab.#prepare(options);
      return lab;
    } catch (error) {
      for (const step of undo) await step().catch(() => undefined);
      throw error;
    }
  }

  async #prepare(options: LabOptions): Promise<void> {
    const { root, plane, user } = this;
    execFileSync("chmod", ["755", root]);
    writeFileSync(this.bundle, await bundleProgram(programs["manager.cjs"]));
    copyFileSync(plane.kubeconfig, join(root, "kubeconfig"));
    chownSync(join(root, "kubeconfig"), user.uid, user.gid);
    await plane.kubectl(["apply", "--server-side", "-f", "dist/crds.k8s.yaml"]);
    await plane.kubectl(["wait", "--for=condition=Established", "crd/clusters.postgresql.cnpg.io", "--timeout=60s"]);
    await this.#createObjects(options);
  }

  async #createObjects(options: LabOptions): Promise<void> {
    const server = await this.#authority.issue("lab-rw");
    const replication = await this.#authority.issue("streaming_replica");
    const operator = await this.#authority.issue("operator");
    writeFileSync(join(this.root, "operator.crt"), operator.cert);
    writeFileSync(join(this.root, "operator.key"), operator.key);
    const secret = (name: string, stringData: Record<string, string>, type = "Opaque") => ({
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name },
      type,
      stringData,
    });
    const tls = (name: string, pair: { cert: string; key: string }) =>
      secret(name, { "tls.crt": pair.cert, "tls.key": pair.key }, "kubernetes.io/tls");
    await this.apply(
      secret("lab-ca", { "ca.crt": this.#authority.ca, "ca.key": "" }),
      tls("lab-server", server),
      tls("lab-replication", replication),
      secret("lab-app", { username: "app", password: "app-password" }, "kubernetes.io/basic-auth"),
      secret("lab-superuser", { username: "postgres", password: "su-password" }, "kubernetes.io/basic-auth"),
      { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name: clusterName }, spec: {} },
      {
        apiVersion: "postgresql.cnpg.io/v1",
        kind: "Cluster",
        metadata: { name: clusterName },
        spec: {
          instances: options.instances ?? 1,
          imageName: "localhost/postgresql:15",
          storage: { size: "1Gi" },
          bootstrap: { initdb: { database: "app", owner: "app" } },
          replicationSlots: { highAvailability: { enabled: true, slotPrefix: "_cnpg_" } },
          ...options.spec,
        },
      },
    );
    const names = Array.from({ length: options.instances ?? 1 }, (_, index) => `${clusterName}-${index + 1}`);
    await this.patchStatus({
      instanceNames: names,
      targetPrimary: `${clusterName}-1`,
      instancesStatus: { healthy: names },
    });
  }

  async apply(...objects: object[]): Promise<void> {
    const list = { apiVersion: "v1", kind: "List", items: objects };
    await this.plane.kubectl(["apply", "-n", namespace, "-f", "-"], JSON.stringify(list));
  }

  async cluster(): Promise<Cluster> {
    return JSON.parse(
      await this.plane.kubectl(["get", "cluster", clusterName, "-n", namespace, "-o", "json"]),
    ) as Cluster;
  }

  async patchStatus(status: NonNullable<Cluster["status"]>): Promise<void> {
    const body = JSON.stringify({ status });
    await this.plane.kubectl([
      "patch",
      "cluster",
      clusterName,
      "-n",
      namespace,
      "--subresource=status",
      "--type=merge",
      "-p",
      body,
    ]);
  }

  async patchCluster(patch: object): Promise<void> {
    await this.plane.kubectl([
      "patch",
      "cluster",
      clusterName,
      "-n",
      namespace,
      "--type=merge",
      "-p",
      JSON.stringify(patch),
    ]);
  }

  /** Fingerprint of the key in the operator's certificate, as the operator registers it. */
  operatorFingerprint(): string {
    const certificate = new X509Certificate(readFileSync(join(this.root, "operator.crt")));
    const key = certificate.publicKey.export({ type: "spki", format: "der" });
    return createHash("sha256").update(key).digest("hex");
  }

  async renewServerCertificate(): Promise<void> {
    const { cert, key } = await this.#authority.issue("lab-rw");
    const stringData = { "tls.crt": cert, "tls.key": key };
    await this.apply({
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "lab-server" },
      type: "kubernetes.io/tls",
      stringData,
    });
  }

  async lease(): Promise<{ spec: Record<string, unknown>; metadata: { annotations?: Record<string, string> } }> {
    return JSON.parse(await this.plane.kubectl(["get", "lease", clusterName, "-n", namespace, "-o", "json"]));
  }

  /** The volume and ports of an instance; they outlive its processes. */
  async instance(name: string): Promise<LabInstance> {
    const known = this.#instances.get(name);
    if (known) return known;
    const made = new LabInstance(this, name, {
      postgres: await choosePort(),
      status: await choosePort(),
      local: await choosePort(),
      metrics: await choosePort(),
    });
    await made.installLauncher();
    this.#instances.set(name, made);
    return made;
  }

  /** Gives files to the user that the instances run as. */
  giveAway(...paths: string[]): void {
    for (const path of paths) chownSync(path, this.user.uid, this.user.gid);
  }

  /** Lets `-rw` lead to an instance, as the operator's labels would. */
  route(instance: LabInstance): void {
    this.proxy.target = instance.ports.postgres;
  }

  async stop(): Promise<void> {
    for (const instance of this.#instances.values()) await instance.remove();
    await this.proxy.close();
    await this.plane.stop();
    await this.#authority.remove();
    if (process.env["LAB_KEEP"]) process.stderr.write(`logs are kept in ${this.root}\n`);
    else rmSync(this.root, { recursive: true, force: true });
  }
}
