import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { choosePort } from "../../../local/process/free-port.ts";
import { waitFor } from "../../../local/process/wait.ts";
import type { Deployment } from "../../../src/api/generated/kubernetes.ts";
import { pluginService } from "../../../src/api/plugin-service.ts";
import { resources } from "../../../src/kube/resources.ts";
import { secretText } from "../../../src/pki/inspect.ts";
import { runHooks } from "../../../src/plugin/barman-cloud/run-hooks.ts";
import type { KubeObject, ResourceType } from "../../../src/ports/kube-api.ts";
import type { Plugin } from "../../../src/ports/plugin.ts";
import { createFiles } from "../../../src/process/files.ts";
import { createPluginPool } from "../../../src/rpc/pool.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { barmanPlugin } from "../../support/barman-cloud-objects.ts";
import { captureLogs, type LogCapture } from "../../support/log-capture.ts";
import { type AccountAccess, actAs } from "../operator/service-account.ts";
import type { World } from "../operator/world.ts";

const namespace = "cnpg-system";
const rbac = (kind: string, plural: string, namespaced: boolean): ResourceType<KubeObject> => ({
  group: "rbac.authorization.k8s.io",
  version: "v1",
  kind,
  plural,
  namespaced,
});

const installed: Record<string, ResourceType<KubeObject>> = {
  ServiceAccount: resources.serviceAccounts,
  Service: resources.services,
  ClusterRole: rbac("ClusterRole", "clusterroles", false),
  ClusterRoleBinding: rbac("ClusterRoleBinding", "clusterrolebindings", false),
  Role: rbac("Role", "roles", true),
  RoleBinding: rbac("RoleBinding", "rolebindings", true),
};

/** The plugin's operator half, with the rights of its synthesized installation and the flags of its Deployment. */
export interface InstalledPlugin {
  namespace: string;
  logs: LogCapture;
  /** Folder with the files that the Deployment keeps in memory. */
  tls: string;
  deployment: Deployment;
  health(path: string): Promise<number>;
  /** Port of the metrics on 127.0.0.1. */
  metricsPort: number;
  /** The plugin as the operator sees it: found by its Service, trusted by its Secrets. */
  load(): Promise<Plugin>;
  stop(): Promise<void>;
}

/** Installs `dist/barman-cloud-plugin.k8s.yaml`, but for the Deployment, whose program runs here. */
export async function installPlugin(world: World): Promise<InstalledPlugin> {
  const manifests = parseAllDocuments(readFileSync("dist/barman-cloud-plugin.k8s.yaml", "utf8")).map(
    (it) => it.toJS() as KubeObject,
  );
  await world.api.create(resources.namespaces, { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
  for (const manifest of manifests) {
    const type = installed[manifest.kind ?? ""];
    if (type) await world.api.create(type, manifest);
  }
  const deployment = manifests.find(({ kind }) => kind === "Deployment") as Deployment;
  const account = await actAs(world, namespace, deployment.spec?.template.spec?.serviceAccountName ?? "");
  return start(world, account, deployment);
}

async function start(world: World, account: AccountAccess, deployment: Deployment): Promise<InstalledPlugin> {
  const tls = mkdtempSync(join(tmpdir(), "plugin-tls-"));
  const logs = captureLogs();
  const stop = new AbortController();
  const [port, healthPort, metricsPort] = [await choosePort(), await choosePort(), await choosePort()];
  const pool = createPluginPool({ clock: systemClock, random: systemRandom, logger: captureLogs().logger });
  const ended = runHooks(
    {
      api: account.api,
      clock: systemClock,
      random: systemRandom,
      logger: logs.logger,
      files: createFiles(),
      listen: {
        kind: "tls",
        address: `127.0.0.1:${port}`,
        certificateFile: join(tls, "server/tls.crt"),
        keyFile: join(tls, "server/tls.key"),
        clientRootsFile: join(tls, "client/tls.crt"),
      },
      sidecarImage: "sidecar:test",
      namespace,
      leaderElect: true,
      certificatesService: "barman-cloud",
      healthAddress: { host: "127.0.0.1", port: healthPort },
      metrics: { address: { host: "127.0.0.1", port: metricsPort }, secure: true, requests: () => [] },
    },
    stop.signal,
  );
  const failed = ended.then(
    () => undefined,
    (error: unknown) => error,
  );
  const health = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${healthPort}${path}`).catch(() => undefined);
    await answer?.arrayBuffer();
    return answer?.status ?? 0;
  };
  await Promise.race([
    waitFor("the plugin listens", async () => (await health("/readyz")) === 200, { timeoutMs: 60_000 }),
    failed.then((error) => Promise.reject(error ?? new Error("the plugin ended"))),
  ]);
  return {
    namespace,
    logs,
    tls,
    deployment,
    health,
    metricsPort,
    async load() {
      const service = await world.api.get(resources.services, { namespace, name: "barman-cloud" });
      const secret = (annotation: string) =>
        world.api.get(resources.secrets, { namespace, name: service.metadata.annotations?.[annotation] ?? "" });
      const server = await secret(pluginService.serverSecret);
      const client = await secret(pluginService.clientSecret);
      pool.replaceEndpoints("services", [
        {
          kind: "tls",
          name: barmanPlugin,
          address: `127.0.0.1:${port}`,
          serverName: "barman-cloud",
          serverRoots: secretText(server, "tls.crt") ?? "",
          clientCertificate: secretText(client, "tls.crt") ?? "",
          clientKey: secretText(client, "tls.key") ?? "",
        },
      ]);
      const plugin = (await pool.load([barmanPlugin])).get(barmanPlugin);
      if (!plugin) throw new Error("the plugin is not in its own session");
      return plugin;
    },
    async stop() {
      await pool.close({ graceMs: 100 });
      stop.abort();
      await ended;
      await account.close();
      rmSync(tls, { recursive: true, force: true });
    },
  };
}
