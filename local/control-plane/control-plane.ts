import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { renderKubeconfig } from "../pki/kubeconfig.ts";
import { type BackgroundProcess, startInBackground } from "../process/background.ts";
import { choosePort } from "../process/free-port.ts";
import { run } from "../process/run.ts";
import { waitFor } from "../process/wait.ts";
import { ensureTools, toolPath } from "../tools/build.ts";
import { claimFolder, removeAbandoned } from "./abandoned.ts";
import { apiServerArguments, etcdArguments } from "./arguments.ts";
import { certificatePaths, createControlPlaneCertificates } from "./certificates.ts";
import { isApiServerReady } from "./ready.ts";

const folderPrefix = "cnpg-ts-cp-";

export interface ControlPlaneOptions {
  /** Whether etcd waits for the disk. @default false */
  fsync?: boolean;
}

/** A real etcd and kube-apiserver for one test file: no nodes and no controllers. */
export interface ControlPlane {
  /** Path of an administrator's kubeconfig. */
  kubeconfig: string;
  url: string;
  caFile: string;
  adminCert: string;
  adminKey: string;
  /** Bearer token of an administrator. */
  token: string;
  /** Folder with kubectl and kube-apiserver. */
  binDir: string;
  /** Runs kubectl as the administrator and returns its standard output; rejects when it fails. */
  kubectl(args: readonly string[], input?: string): Promise<string>;
  /** Takes the API server away at once (SIGKILL), or after it has drained its requests (SIGTERM). */
  stopApiServer(how?: "kill" | "drain"): Promise<void>;
  /** Starts it again on the same port; resolves when it is ready. */
  startApiServer(): Promise<void>;
  /** Ends both and removes everything they wrote. */
  stop(): Promise<void>;
}

/** Starts a control plane on loopback in a folder of its own; several may run at the same time. */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  await ensureTools(["etcd", "kube-apiserver", "kubectl"]);
  removeAbandoned(tmpdir(), folderPrefix);
  const folder = mkdtempSync(join(tmpdir(), folderPrefix));
  claimFolder(folder);
  const certificates = join(folder, "pki");
  const identity = createControlPlaneCertificates(certificates, ["127.0.0.1", "10.0.0.1"]);
  const etcdSocket = join(folder, "etcd.sock");
  const etcd = startInBackground(
    toolPath("etcd"),
    etcdArguments({ dataFolder: join(folder, "etcd"), socket: etcdSocket, fsync: options.fsync ?? false }),
    join(folder, "etcd.log"),
  );
  const port = await choosePort();
  const url = `https://127.0.0.1:${port}`;
  const kubeconfig = join(folder, "kubeconfig");
  writeFileSync(
    kubeconfig,
    renderKubeconfig({
      name: "cnpg-ts-control-plane",
      server: url,
      authority: identity.authority.certificate,
      client: identity.admin,
    }),
    { mode: 0o600 },
  );
  let apiServer: BackgroundProcess | undefined;

  async function startApiServer(): Promise<void> {
    if (apiServer) return;
    const started = startInBackground(
      toolPath("kube-apiserver"),
      apiServerArguments({
        certificates,
        etcdSocket,
        bindAddress: "127.0.0.1",
        port,
        serviceSubnet: "10.0.0.0/24",
        serviceAccounts: false,
      }),
      join(folder, "kube-apiserver.log"),
    );
    apiServer = started;
    await waitFor("kube-apiserver ready", () => isApiServerReady(url, identity.authority.certificate, identity.token), {
      timeoutMs: 120_000,
      failure: () => started.failure() ?? etcd.failure(),
    });
  }

  async function stopApiServer(how: "kill" | "drain" = "kill"): Promise<void> {
    await apiServer?.stop(how === "kill" ? "SIGKILL" : "SIGTERM");
    apiServer = undefined;
  }

  async function stop(): Promise<void> {
    await stopApiServer();
    await etcd.stop("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }

  try {
    await startApiServer();
  } catch (error) {
    await stop();
    throw error;
  }
  const files = certificatePaths(certificates);
  return {
    kubeconfig,
    url,
    caFile: files.authority,
    adminCert: files.adminCertificate,
    adminKey: files.adminKey,
    token: identity.token,
    binDir: dirname(toolPath("kubectl")),
    kubectl: (args, input) =>
      run(toolPath("kubectl"), [`--kubeconfig=${kubeconfig}`, ...args], input === undefined ? {} : { input }),
    stopApiServer,
    startApiServer,
    stop,
  };
}
