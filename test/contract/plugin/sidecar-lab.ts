import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitFor } from "../../../local/process/wait.ts";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import type { ObjectStore as ObjectStoreObject } from "../../../src/api/generated/objectstore.ts";
import { defaultBuildContext } from "../../../src/build/context.ts";
import { buildRole, buildRoleBinding } from "../../../src/build/role.ts";
import { resources } from "../../../src/kube/resources.ts";
import { createStore } from "../../../src/kube/store.ts";
import { ensureAccess } from "../../../src/plugin/barman-cloud/ensure-access.ts";
import { runHealthcheck } from "../../../src/plugin/barman-cloud/healthcheck.ts";
import { runSidecar, type SidecarOptions } from "../../../src/plugin/barman-cloud/run-sidecar.ts";
import type { ObjectStore } from "../../../src/ports/object-store.ts";
import type { Plugin } from "../../../src/ports/plugin.ts";
import { createFiles } from "../../../src/process/files.ts";
import { createPluginPool } from "../../../src/rpc/pool.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { createS3Store } from "../../../src/store/s3-store.ts";
import { type BarmanTools, barmanTools } from "../../support/barman.ts";
import { anArchivedCluster, anObjectStore, barmanPlugin } from "../../support/barman-cloud-objects.ts";
import { captureLogs, type LogCapture } from "../../support/log-capture.ts";
import { type S3Server, startS3Server } from "../../support/s3-server.ts";
import { makeSegment } from "../../support/wal-segment.ts";
import { type AccountAccess, actAs } from "../operator/service-account.ts";
import { startWorld, type World } from "../operator/world.ts";

export const namespace = "shop";
export const bucket = "archive";

/** A real API server and a real S3 server, with a Cluster `orders` and its service account. */
export interface SidecarLab {
  world: World;
  s3: S3Server;
  barman: BarmanTools;
  /** The bucket, for looking into it. */
  store: ObjectStore;
  account: AccountAccess;
  /** The Cluster as the instance manager would send it, with this pod as primary. */
  cluster(spec?: Partial<Cluster["spec"]>, status?: Cluster["status"]): Cluster;
  /** Makes or changes the ObjectStore `own`, and the rights that follow from it. */
  useStore(configuration?: Partial<ObjectStoreObject["spec"]["configuration"]>): Promise<void>;
  stop(): Promise<void>;
}

/** A data folder and one sidecar beside it. */
export interface RunningSidecar {
  folder: string;
  wal: string;
  logs: LogCapture;
  plugin: Plugin;
  environment: Record<string, string>;
  socketFolder: string;
  /** Writes a segment that waits to be archived; gives its path. */
  segment(name: string, seed?: string): Promise<string>;
  restored(name: string): Promise<Buffer>;
  stop(): Promise<void>;
}

export async function openSidecarLab(): Promise<SidecarLab> {
  const [world, s3] = await Promise.all([startWorld(), startS3Server()]);
  const { api } = world;
  await api.create(resources.namespaces, { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
  const created = await api.create(resources.clusters, anArchivedCluster());
  await api.create(resources.serviceAccounts, {
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: { namespace, name: "orders" },
  });
  await api.create(resources.roles, buildRole(created, defaultBuildContext));
  await api.create(resources.roleBindings, buildRoleBinding(created, defaultBuildContext));
  await writeKeys(world, "keys", s3.accessKey, s3.secretKey);
  const store = await createS3Store(s3.options(bucket));
  await store.checkBucket({ create: true });
  const account = await actAs(world, namespace, "orders");
  return {
    world,
    s3,
    store,
    account,
    barman: await barmanTools(s3),
    cluster: (spec = {}, status = { currentPrimary: "orders-1" }) => ({
      ...anArchivedCluster(spec, status),
      metadata: created.metadata,
    }),
    useStore: (configuration = {}) => applyStore(world, s3, created, configuration),
    async stop() {
      store.close();
      await account.close();
      await s3.stop();
      await world.stop();
    },
  };
}

/** Writes the Secret with the keys of an S3 user; they end with a newline, as an editor leaves them. */
export async function writeKeys(world: World, name: string, id: string, secret: string): Promise<void> {
  const data = { id: Buffer.from(`${id}\n`).toString("base64"), secret: Buffer.from(secret).toString("base64") };
  const found = await world.api.list(resources.secrets, { namespace, fieldSelector: `metadata.name=${name}` });
  if (found.length > 0) {
    await world.api.patch(resources.secrets, { namespace, name }, { type: "merge", body: { data } });
    return;
  }
  await world.api.create(resources.secrets, {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { namespace, name },
    data,
  });
}

async function applyStore(
  world: World,
  s3: S3Server,
  cluster: Cluster,
  configuration: Partial<ObjectStoreObject["spec"]["configuration"]>,
): Promise<void> {
  const { api } = world;
  const wanted = anObjectStore(
    "own",
    {},
    { destinationPath: `s3://${bucket}/clusters/`, endpointURL: s3.endpoint, ...configuration },
  );
  const [live] = await api.list(resources.objectStores, { namespace, fieldSelector: "metadata.name=own" });
  const stored = live
    ? await api.update(resources.objectStores, { ...live, spec: wanted.spec })
    : await api.create(resources.objectStores, wanted);
  const options = { logger: captureLogs().logger, clock: systemClock };
  const copies = {
    roles: createStore(api, resources.roles, options),
    roleBindings: createStore(api, resources.roleBindings, options),
  };
  await ensureAccess(cluster, [stored], { api, logger: options.logger, ...copies });
}

/** What the sidecar of the lab's instance finds in its environment, with the instance's files in a folder. */
export function sidecarEnvironment(folder: string): Record<string, string> {
  return {
    NAMESPACE: namespace,
    CLUSTER_NAME: "orders",
    POD_NAME: "orders-1",
    PGDATA: join(folder, "pgdata"),
    SPOOL_DIRECTORY: join(folder, "spool"),
  };
}

/** Starts the sidecar in this process; the caller stops it. */
export async function startSidecar(
  lab: SidecarLab,
  options: { mode?: SidecarOptions["mode"]; walVolume?: string; env?: Record<string, string> } = {},
): Promise<RunningSidecar> {
  const folder = await mkdtemp(join(tmpdir(), "sidecar-"));
  const wal = join(folder, "pgdata/pg_wal");
  await mkdir(join(wal, "archive_status"), { recursive: true });
  const socketFolder = join(folder, "plugins");
  const environment = { ...sidecarEnvironment(folder), ...options.env };
  const logs = captureLogs();
  const stop = new AbortController();
  const ended = runSidecar(
    {
      mode: options.mode ?? "instance",
      api: lab.account.api,
      clock: systemClock,
      random: systemRandom,
      logger: logs.logger,
      files: createFiles(),
      env: environment,
      socketFolder,
      certificates: join(folder, "certificates"),
      graceMs: 2_000,
      scratchFolder: join(folder, "recovery"),
      ...(options.walVolume === undefined ? {} : { walVolume: options.walVolume }),
    },
    stop.signal,
  );
  const healthy = async () => (await runHealthcheck(["unix"], socketFolder)).code === 0;
  await Promise.race([waitFor("the sidecar serves", healthy, { timeoutMs: 60_000 }), ended]);
  const pool = createPluginPool({ clock: systemClock, random: systemRandom, logger: logs.logger });
  pool.replaceEndpoints("sockets", [{ kind: "socket", name: barmanPlugin, path: join(socketFolder, barmanPlugin) }]);
  const plugin = (await pool.load([barmanPlugin])).get(barmanPlugin);
  if (!plugin) throw new Error("the plugin is not in its own session");
  return {
    folder,
    wal,
    logs,
    plugin,
    environment,
    socketFolder,
    segment: (name, seed) => writeSegment(wal, name, seed),
    restored: (name) => readFile(join(folder, name)),
    async stop() {
      await pool.close({ graceMs: 100 });
      stop.abort();
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Writes a segment and its sign of readiness. */
export async function writeSegment(wal: string, name: string, seed = "a"): Promise<string> {
  await writeFile(join(wal, name), makeSegment(name, { seed }));
  await writeFile(join(wal, "archive_status", `${name}.ready`), "");
  return join(wal, name);
}
