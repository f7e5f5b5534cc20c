// A plugin behind a Service of the operator's namespace, over TLS: how it is found, held, followed and asked at admission.
import dns from "node:dns";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { choosePort } from "../../../local/process/free-port.ts";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import type { EndpointSlice, Secret } from "../../../src/api/generated/kubernetes.ts";
import { phases } from "../../../src/api/phases.ts";
import { encodeData } from "../../../src/build/credentials.ts";
import { resources } from "../../../src/kube/resources.ts";
import { createPluginServer, type PluginServer } from "../../../src/plugin/framework/index.ts";
import { captureLogs } from "../../support/log-capture.ts";
import { type Pair, selfSigned } from "../rpc/certificates.ts";
import { openScene, type RunningOperator, type Scene, startOperator, startWorld, type World } from "./world.ts";

const name = "service.example.com";
const serviceName = "far-plugin";

let world: World;
let scene: Scene;
let operator: RunningOperator;
let folder: string;
let port: number;
let webhookPort: number;
let server: PluginServer | undefined;
let pairs: { server: Pair; client: Pair };

beforeAll(async () => {
  world = await startWorld();
  scene = await openScene(world);
  folder = await mkdtemp(join(tmpdir(), "plugin-service-"));
  [port, webhookPort] = await Promise.all([choosePort(), choosePort()]);
  const [forServer, forClient] = await Promise.all([selfSigned(serviceName), selfSigned("operator")]);
  pairs = { server: forServer, client: forClient };
  // The names of Services are the cluster's DNS to know, which is not there.
  const lookup = dns.promises.lookup;
  vi.spyOn(dns.promises, "lookup").mockImplementation(((host: string, options: object) =>
    host === `${serviceName}.${scene.namespace}.svc`
      ? Promise.resolve([{ address: "127.0.0.1", family: 4 }])
      : lookup(host, options)) as typeof lookup);
  const env = { OPERATOR_NAMESPACE: scene.namespace, PLUGIN_SOCKET_DIR: join(folder, "none") };
  operator = startOperator(world, scene.namespace, undefined, env, undefined, { webhookPort });
});

afterAll(async () => {
  await operator?.stop();
  await server?.stop({ graceMs: 0 });
  vi.restoreAllMocks();
  await scene?.stop();
  await world?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Waits also through the pauses between two looks of the operator. */
const eventually = <T>(look: () => T) => expect.poll(look, { timeout: 60_000 });

async function startPlugin(version: string): Promise<void> {
  const file = (it: string) => join(folder, it);
  await writeFile(file("server.crt"), pairs.server.cert);
  await writeFile(file("server.key"), pairs.server.key);
  await writeFile(file("client.crt"), pairs.client.cert);
  server = await createPluginServer({
    identity: { name, version, displayName: name, license: "Apache-2.0" },
    listen: {
      kind: "tls",
      address: `127.0.0.1:${port}`,
      certificateFile: file("server.crt"),
      keyFile: file("server.key"),
      clientRootsFile: file("client.crt"),
    },
    logger: captureLogs().logger,
    services: {
      operator: {
        mutateCluster: ({ metadata }) =>
          metadata.name === "mutated" ? [{ op: "add", path: "/spec/description", value: "by the plugin" }] : undefined,
        validateClusterCreate: ({ spec }) =>
          spec.plugins?.[0]?.parameters?.["color"] === "none"
            ? [{ path: ["spec", "plugins", "0", "parameters", "color"], value: "none", message: "is no color" }]
            : [],
        validateClusterChange: ({ before, after }) =>
          before.spec.instances > after.spec.instances
            ? [{ path: ["spec", "instances"], value: String(after.spec.instances), message: "only grows here" }]
            : [],
      },
    },
  });
}

const secret = (secretName: string, { cert, key }: Pair): Secret => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: { namespace: scene.namespace, name: secretName },
  type: "kubernetes.io/tls",
  data: encodeData({ "tls.crt": cert, "tls.key": key }),
});
const reasons = async () =>
  (await scene.events()).filter((it) => it.involvedObject.kind === "Service").map((it) => it.reason);
const finalizers = async () => (await scene.find(resources.services, serviceName))?.metadata.finalizers;

async function install(): Promise<void> {
  await world.api.create(resources.services, {
    apiVersion: "v1",
    kind: "Service",
    metadata: {
      namespace: scene.namespace,
      name: serviceName,
      labels: { "cnpg.io/pluginName": name },
      annotations: {
        "cnpg.io/pluginPort": String(port),
        "cnpg.io/pluginClientSecret": "plugin-client",
        "cnpg.io/pluginServerSecret": "plugin-server",
      },
    },
    spec: { ports: [{ port }] },
  });
}

describe("a plugin's Service", () => {
  it("wakes the clusters that wait for it, is held back from deletion, and names what is missing", async () => {
    await startPlugin("1.0.0");
    await scene.create("far", { instances: 1, plugins: [{ name }] });
    await scene.waitStatus("far", "an unknown plugin", (it) => it.phase === phases.unknownPlugin);
    await install();
    await eventually(reasons).toContain("ServerSecretNotFound");
    await eventually(finalizers).toContain("cnpg.io/cleanupPlugin");
    await world.api.create(resources.secrets, secret("plugin-server", pairs.server));
    await eventually(reasons).toContain("ClientSecretNotFound");
    await world.api.create(resources.secrets, secret("plugin-client", pairs.client));
    const healthy = await scene.waitHealthy("far", 1, 60_000);
    expect(healthy.status?.pluginStatus).toMatchObject([{ name, version: "1.0.0" }]);
    await eventually(reasons).toEqual(expect.arrayContaining(["FinalizerAdded", "PluginRegistered"]));
  });

  it("is read anew when other pods serve it", async () => {
    const slice = (address: string): EndpointSlice => ({
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: {
        namespace: scene.namespace,
        name: `${serviceName}-abc`,
        labels: { "kubernetes.io/service-name": serviceName },
      },
      addressType: "IPv4",
      endpoints: [{ addresses: [address], conditions: { ready: true } }],
      ports: [{ name: "grpc", port }],
    });
    await world.api.create(resources.endpointSlices, slice("10.0.0.1"));
    await server?.stop({ graceMs: 0 });
    await startPlugin("2.0.0");
    const live = await world.api.get(resources.endpointSlices, {
      namespace: scene.namespace,
      name: `${serviceName}-abc`,
    });
    const { endpoints } = slice("10.0.0.2");
    await world.api.update(resources.endpointSlices, { ...live, ...(endpoints ? { endpoints } : {}) });
    await scene.waitStatus("far", "the new version", (it) => it.pluginStatus?.[0]?.version === "2.0.0", 60_000);
  });
});

interface Review {
  allowed: boolean;
  patch?: string;
  warnings?: string[];
  status?: { message: string };
}

function review(verb: "mutate" | "validate", object: Cluster, oldObject?: Cluster): Promise<Review> {
  const operation = oldObject ? "UPDATE" : "CREATE";
  const path = `/${verb}-postgresql-cnpg-io-v1-cluster`;
  return new Promise((resolve, reject) => {
    const options = {
      host: "127.0.0.1",
      port: webhookPort,
      path,
      method: "POST",
      rejectUnauthorized: false,
      agent: false,
    };
    const call = request(options, (answer) => {
      let text = "";
      answer.setEncoding("utf8");
      answer.on("data", (chunk: string) => {
        text += chunk;
      });
      answer.on("end", () => resolve((JSON.parse(text) as { response: Review }).response));
    });
    call.on("error", reject);
    call.end(JSON.stringify({ request: { uid: "u", operation, object, ...(oldObject ? { oldObject } : {}) } }));
  });
}

const aCluster = (
  clusterName: string,
  spec: Partial<Cluster["spec"]>,
  annotations: Record<string, string> = {},
): Cluster => ({
  apiVersion: "postgresql.cnpg.io/v1",
  kind: "Cluster",
  metadata: { namespace: scene.namespace, name: clusterName, annotations },
  spec: {
    instances: 1,
    imageName: "example.org/postgresql:17.2",
    storage: { size: "1Gi" },
    replicationSlots: { highAvailability: { enabled: false }, synchronizeReplicas: { enabled: false } },
    ...spec,
  },
});
const colored = (color: string) => ({ plugins: [{ name, parameters: { color } }] });

describe("a review of a Cluster", () => {
  it("lets its plugins change it, after our own defaults", async () => {
    const { allowed, patch } = await review("mutate", aCluster("mutated", colored("red")));
    expect(allowed).toBe(true);
    const operations = JSON.parse(Buffer.from(patch ?? "", "base64").toString()) as { path: string; value: unknown }[];
    expect(operations).toContainEqual({ op: "add", path: "/spec/description", value: "by the plugin" });
    expect(operations.some(({ path }) => path.startsWith("/spec/postgresql"))).toBe(true);
  });

  it("lets them refuse it, a new one as a change", async () => {
    expect(await review("validate", aCluster("blank", colored("red")))).toMatchObject({ allowed: true });
    const refused = await review("validate", aCluster("blank", colored("none")));
    expect(refused.status?.message).toBe(
      'Cluster.postgresql.cnpg.io "blank" is invalid: spec.plugins.0.parameters.color: Invalid value: "none": is no color',
    );
    const [three, two] = [3, 2].map((instances) => aCluster("blank", { ...colored("red"), instances }));
    const change = await review("validate", two as Cluster, three as Cluster);
    expect(change.status?.message).toContain('spec.instances: Invalid value: "2": only grows here');
    expect(await review("validate", three as Cluster, two as Cluster)).toMatchObject({ allowed: true });
  });

  it("asks nobody where validation is off, nor about anything but a new spec", async () => {
    const off = aCluster("blank", colored("none"), { "cnpg.io/validation": "disabled" });
    expect((await review("validate", off)).allowed).toBe(true);
    const same = aCluster("blank", colored("none"));
    expect(
      (await review("validate", { ...same, metadata: { ...same.metadata, labels: { a: "b" } } }, same)).allowed,
    ).toBe(true);
  });

  it("says that a plugin was not asked, and lets the Cluster in", async () => {
    const absent = aCluster("early", { plugins: [{ name: "absent.example.com" }] });
    const { allowed, warnings } = await review("validate", absent);
    expect(allowed).toBe(true);
    expect(warnings?.join()).toContain("plugin absent.example.com is not known");
    expect((await review("mutate", absent)).allowed).toBe(true);
  });
});

describe("the end of a plugin", () => {
  it("lets its Service go, and tells its clusters", async () => {
    await world.api.delete(resources.services, { namespace: scene.namespace, name: serviceName });
    await eventually(() => scene.find(resources.services, serviceName)).toBeUndefined();
    await eventually(reasons).toContain("PluginCleanup");
    await scene.waitStatus("far", "an unknown plugin", (it) => it.phase === phases.unknownPlugin);
  });
});
