import { applyPatch, type Operation } from "rfc6902";
import { describe, expect, test } from "vitest";
import type { Cluster } from "../../../../src/api/generated/cluster.ts";
import type { Container, Job, Pod, PodSpec } from "../../../../src/api/generated/kubernetes.ts";
import type { ObjectStore } from "../../../../src/api/generated/objectstore.ts";
import { defaultBuildContext } from "../../../../src/build/context.ts";
import { buildInstancePod } from "../../../../src/build/instance-pod.ts";
import { readClusterStores, storeNames } from "../../../../src/plugin/barman-cloud/cluster-stores.ts";
import { injectSidecar } from "../../../../src/plugin/barman-cloud/inject-sidecar.ts";
import { buildJsonPatch } from "../../../../src/plugin/framework/json-patch.ts";
import type { KubeObject } from "../../../../src/ports/kube-api.ts";
import { anArchivedCluster, anExternalStore, anObjectStore } from "../../../support/barman-cloud-objects.ts";

function inject(object: KubeObject, cluster: Cluster, objects: ObjectStore[] = [anObjectStore("own")]): KubeObject {
  const stores = readClusterStores(cluster);
  const byName = new Map(objects.map((store) => [store.metadata.name ?? "", store]));
  expect(storeNames(stores).filter((name) => !byName.has(name))).toEqual([]);
  return injectSidecar(object, { cluster, stores, objects: byName, image: "sidecar:1" });
}

const pod = (main: Partial<Container> = {}): Pod => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "orders-1" },
  spec: {
    initContainers: [{ name: "bootstrap-controller", image: "i" }],
    containers: [
      { name: "proxy", image: "mesh" },
      { name: "postgres", image: "pg", ...main },
    ],
  },
});

const job = (labels: Record<string, string>, container: string): Job => ({
  apiVersion: "batch/v1",
  kind: "Job",
  metadata: { name: "orders-1-full-recovery" },
  spec: {
    template: {
      metadata: { labels },
      spec: {
        containers: [{ name: container, image: "pg", env: [{ name: "POD_NAME", value: "orders-1-full-recovery" }] }],
      },
    },
  },
});

const sidecarOf = (object: KubeObject): Container => {
  const { spec } = object as { spec?: { template?: { spec?: PodSpec } } & PodSpec };
  const { initContainers = [] } = spec?.template?.spec ?? spec ?? { initContainers: [] };
  const found = initContainers.filter(({ name }) => name === "plugin-barman-cloud");
  expect(found).toHaveLength(1);
  return found[0] as Container;
};

describe("the sidecar of an instance pod", () => {
  test("is exactly the container that peers compare", () => {
    const cluster = anArchivedCluster({ imagePullPolicy: "Always" });
    const context = { ...defaultBuildContext, operatorImage: "operator:1" };
    const built = buildInstancePod(cluster, 1, context);
    const sidecar = sidecarOf(inject(built, cluster));
    expect(sidecar).toEqual({
      name: "plugin-barman-cloud",
      image: "sidecar:1",
      imagePullPolicy: "Always",
      restartPolicy: "Always",
      args: ["instance"],
      resources: {},
      env: [
        { name: "PGDATA", value: "/var/lib/postgresql/data/pgdata" },
        { name: "POD_NAME", value: "orders-1" },
        { name: "NAMESPACE", value: "shop" },
        { name: "CLUSTER_NAME", value: "orders" },
        { name: "PSQL_HISTORY", value: "/controller/tmp/.psql_history" },
        { name: "PGPORT", value: "5432" },
        { name: "PGHOST", value: "/controller/run" },
        { name: "TMPDIR", value: "/controller/tmp" },
        { name: "SPOOL_DIRECTORY", value: "/controller/wal-restore-spool" },
        { name: "CUSTOM_CNPG_GROUP", value: "postgresql.cnpg.io" },
        { name: "CUSTOM_CNPG_VERSION", value: "v1" },
      ],
      startupProbe: {
        exec: { command: ["/manager", "healthcheck", "unix"] },
        periodSeconds: 1,
        timeoutSeconds: 5,
        failureThreshold: 30,
      },
      securityContext: {
        allowPrivilegeEscalation: false,
        privileged: false,
        runAsNonRoot: true,
        readOnlyRootFilesystem: true,
        seccompProfile: { type: "RuntimeDefault" },
        capabilities: { drop: ["ALL"] },
      },
      volumeMounts: [
        { name: "pgdata", mountPath: "/var/lib/postgresql/data" },
        { name: "scratch-data", mountPath: "/controller" },
        { name: "shm", mountPath: "/dev/shm" },
        { name: "plugins", mountPath: "/plugins" },
      ],
    });
  });

  test("comes once, however often the hook is called, and its patch applies", () => {
    const cluster = anArchivedCluster();
    const store = anObjectStore("own", {}, { endpointCA: { name: "ca", key: "ca.crt" } });
    const first = inject(pod(), cluster, [store]);
    expect(inject(first, cluster, [store])).toEqual(first);
    expect(buildJsonPatch(first, inject(first, cluster, [store]))).toEqual([]);
    const patched = structuredClone(pod());
    expect(applyPatch(patched, buildJsonPatch(pod(), first) as Operation[])).toEqual([null, null, null]);
    expect(patched).toEqual(JSON.parse(JSON.stringify(first)));
  });

  test("takes the container's own place when an older one is there", () => {
    const old = pod();
    old.spec?.initContainers?.unshift({ name: "plugin-barman-cloud", image: "sidecar:0", args: ["instance", "--old"] });
    const result = inject(old, anArchivedCluster()) as Pod;
    expect(result.spec?.initContainers?.map(({ name, image }) => [name, image])).toEqual([
      ["plugin-barman-cloud", "sidecar:1"],
      ["bootstrap-controller", "i"],
    ]);
  });

  test("shares the socket folder with the main container, wherever that stands", () => {
    const { spec } = inject(pod(), anArchivedCluster()) as Pod;
    expect(spec?.volumes).toEqual([{ name: "plugins", emptyDir: {} }]);
    expect(spec?.containers.map(({ volumeMounts }) => volumeMounts)).toEqual([
      undefined,
      [{ name: "plugins", mountPath: "/plugins" }],
    ]);
  });

  test("takes settings from one store, variables and authorities from all of them", () => {
    const cluster = anArchivedCluster({
      bootstrap: { recovery: { source: "old" } },
      externalClusters: [anExternalStore("old", { barmanObjectName: "depot" })],
    });
    const own = anObjectStore(
      "own",
      {
        instanceSidecarConfiguration: {
          additionalContainerArgs: ["--pprof-server"],
          logLevel: "debug",
          env: [
            { name: "A", value: "own" },
            { name: "PGDATA", value: "no" },
          ],
          resources: { limits: { memory: "256Mi" } },
        },
      },
      { endpointCA: { name: "ca-own", key: "ca.crt" } },
    );
    const depot = anObjectStore(
      "depot",
      {
        instanceSidecarConfiguration: {
          env: [
            { name: "A", value: "depot" },
            { name: "B", value: "depot" },
          ],
        },
      },
      { endpointCA: { name: "ca-depot", key: "tls.crt" } },
    );
    const result = inject(pod({ env: [{ name: "PGDATA", value: "/data" }] }), cluster, [own, depot]) as Pod;
    const sidecar = sidecarOf(result);
    expect(sidecar.args).toEqual(["instance", "--pprof-server", "--log-level=debug"]);
    expect(sidecar.resources).toEqual({ limits: { memory: "256Mi" } });
    const env = sidecar.env ?? [];
    expect([env[0], ...env.slice(-2)]).toEqual([
      { name: "PGDATA", value: "/data" },
      { name: "A", value: "own" },
      { name: "B", value: "depot" },
    ]);
    expect(sidecar.volumeMounts?.[0]).toEqual({ name: "barman-certificates", mountPath: "/barman-certificates" });
    expect(result.spec?.volumes?.[0]).toEqual({
      name: "barman-certificates",
      projected: {
        sources: [
          { secret: { name: "ca-depot", items: [{ key: "tls.crt", path: "depot/barman-ca.crt" }] } },
          { secret: { name: "ca-own", items: [{ key: "ca.crt", path: "own/barman-ca.crt" }] } },
        ],
      },
    });
    const withoutAuthority = inject(result, cluster, [anObjectStore("own"), anObjectStore("depot")]) as Pod;
    expect(withoutAuthority.spec?.volumes?.map(({ name }) => name)).toEqual(["plugins"]);
  });

  test("projects the authority of a store once, whatever parts it plays", () => {
    const cluster = anArchivedCluster({
      plugins: [],
      bootstrap: { recovery: { source: "far" } },
      replica: { source: "far", enabled: true },
      externalClusters: [anExternalStore("far", { barmanObjectName: "depot" })],
    });
    const depot = anObjectStore("depot", {}, { endpointCA: { name: "ca", key: "ca.crt" } });
    const { spec } = inject(pod(), cluster, [depot]) as Pod;
    expect(spec?.volumes?.[0]?.projected?.sources).toHaveLength(1);
  });

  test("is not added where only a recovery needs the plugin, or nothing does", () => {
    const cluster = anArchivedCluster({
      plugins: [],
      bootstrap: { recovery: { source: "old" } },
      externalClusters: [anExternalStore("old", { barmanObjectName: "depot" })],
    });
    const plain = pod();
    expect(inject(plain, cluster, [anObjectStore("depot")])).toBe(plain);
    expect(inject(plain, anArchivedCluster({ plugins: [] }))).toBe(plain);
  });
});

describe("the sidecar of a recovery Job", () => {
  const cluster = anArchivedCluster({
    bootstrap: { recovery: { source: "old" } },
    externalClusters: [anExternalStore("old", { barmanObjectName: "depot" })],
  });
  const depot = anObjectStore("depot", {
    instanceSidecarConfiguration: { logLevel: "trace", resources: { requests: { cpu: "1" } } },
  });
  const objects = [anObjectStore("own"), depot];

  test.each([
    ["full-recovery", "cnpg.io/jobRole"],
    ["snapshot-recovery", "fork.example.com/jobRole"],
  ])("goes into %s beside the container of that name, found by %s", (role, label) => {
    const sidecar = sidecarOf(inject(job({ [label]: role }, role), cluster, objects));
    expect(sidecar.args).toEqual(["restore"]);
    expect(sidecar.resources).toEqual({ requests: { cpu: "1" } });
    expect(sidecar.env?.[0]).toEqual({ name: "POD_NAME", value: "orders-1-full-recovery" });
  });

  test("does not go into other jobs, nor into those of clusters that recover from elsewhere", () => {
    const join = job({ "cnpg.io/jobRole": "join" }, "join");
    expect(inject(join, cluster, objects)).toBe(join);
    const recovery = job({ "cnpg.io/jobRole": "full-recovery" }, "full-recovery");
    expect(inject(recovery, anArchivedCluster())).toBe(recovery);
  });

  test("other kinds, and pods without the main container, are refused", () => {
    const other = { apiVersion: "apps/v1", kind: "Deployment", metadata: {} };
    expect(() => inject(other, cluster, objects)).toThrow(/pods and jobs/);
    const bare: Pod = { ...pod(), spec: { containers: [{ name: "other", image: "x" }] } };
    expect(() => inject(bare, cluster, objects)).toThrow(/no container postgres/);
  });
});
