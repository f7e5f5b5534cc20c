import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Secret } from "../../../src/api/generated/kubernetes.ts";
import { encodeData } from "../../../src/build/credentials.ts";
import { resources } from "../../../src/kube/resources.ts";
import { parseCertificates } from "../../../src/pki/certificate.ts";
import { secretText } from "../../../src/pki/inspect.ts";
import { createAuthority, createLeaf, renewAuthority, renewLeaf } from "../../../src/pki/issue.ts";
import { closeStage, openStage, type RunningOperator, type Scene, type World } from "./world.ts";

const soon = { timeout: 20_000, interval: 50 };

let world: World;
let scene: Scene;
let operator: RunningOperator;

beforeAll(async () => {
  ({ world, scene, operator } = await openStage());
});

afterAll(() => closeStage({ world, scene, operator }));

async function eventsOf(cluster: string): Promise<string[]> {
  const events = await scene.events();
  return events.filter((it) => it.involvedObject.name === cluster).map((it) => `${it.reason}: ${it.message}`);
}

async function podsOf(cluster: string) {
  return world.api.list(resources.pods, {
    namespace: scene.namespace,
    labelSelector: `cnpg.io/cluster=${cluster},cnpg.io/podRole=instance`,
  });
}

describe("an image catalog", () => {
  const image = (version: string) => `example.org/postgresql:${version}`;
  const reference = (kind: string, name: string) => ({ apiGroup: "postgresql.cnpg.io", kind, name, major: 17 });
  const failed = "Cluster has incomplete or invalid image catalog";

  async function offer(images: { major: number; image: string }[]): Promise<void> {
    const key = { namespace: scene.namespace, name: "cat" };
    await world.api.patch(resources.imageCatalogs, key, { type: "merge", body: { spec: { images } } });
  }

  const imagesOf = async () => (await podsOf("i")).map((it) => it.spec?.containers[0]?.image);

  it("that is missing, or lacks the major version, is told, and the cluster starts as soon as it has it", async () => {
    const catalog = { apiVersion: "postgresql.cnpg.io/v1" as const, kind: "ImageCatalog" as const };
    await world.api.create(resources.clusters, {
      apiVersion: "postgresql.cnpg.io/v1",
      kind: "Cluster",
      metadata: { namespace: scene.namespace, name: "i" },
      spec: { instances: 2, storage: { size: "1Gi" }, imageCatalogRef: reference("ImageCatalog", "cat") },
    });
    const missing = await scene.waitStatus("i", "the phase", (it) => it.phase === failed);
    expect(missing.status?.phaseReason).toBe("catalog ImageCatalog/cat not found");
    await world.api.create(resources.imageCatalogs, {
      ...catalog,
      metadata: { namespace: scene.namespace, name: "cat" },
      spec: { images: [{ major: 16, image: image("16.6") }] },
    });
    const reason = "selected major version is not available in the catalog";
    await scene.waitStatus("i", "the missing major version", (it) => it.phaseReason === reason);
    await expect
      .poll(() => eventsOf("i"), soon)
      .toEqual(
        expect.arrayContaining([
          "DiscoverImage: Error getting ImageCatalog/cat: not found",
          "DiscoverImage: Cannot find major 17 in ImageCatalog/cat",
        ]),
      );
    await offer([{ major: 17, image: image("17.2") }]);
    const cluster = await scene.waitHealthy("i", 2);
    expect(cluster.status).toMatchObject({
      image: image("17.2"),
      pgDataImageInfo: { image: image("17.2"), majorVersion: 17 },
    });
  });

  it("that offers another image has every pod made anew with it", async () => {
    await offer([{ major: 17, image: image("17.3") }]);
    await expect.poll(imagesOf, soon).toEqual([image("17.3"), image("17.3")]);
    await scene.waitHealthy("i", 2);
  });

  it("that goes away leaves the pods as they are, and one for all namespaces may take its place", async () => {
    const before = (await podsOf("i")).map((it) => it.metadata.uid);
    await world.api.delete(resources.imageCatalogs, { namespace: scene.namespace, name: "cat" });
    await scene.waitStatus("i", "the phase", (it) => it.phase === failed);
    await scene.node.killPod("i-1");
    await scene.waitStatus("i", "a failover all the same", (it) => it.currentPrimary === "i-2");
    await world.api.create(resources.clusterImageCatalogs, {
      apiVersion: "postgresql.cnpg.io/v1",
      kind: "ClusterImageCatalog",
      metadata: { name: `all-${scene.namespace}` },
      spec: { images: [{ major: 17, image: image("17.3") }] },
    });
    await scene.patchSpec("i", { imageCatalogRef: reference("ClusterImageCatalog", `all-${scene.namespace}`) });
    await scene.waitHealthy("i", 2);
    const after = (await podsOf("i")).map((it) => it.metadata.uid);
    expect(after[1]).toBe(before[1]);
    expect(await imagesOf()).toEqual([image("17.3"), image("17.3")]);
  });
});

/** A Secret with certificates, as a person or another program makes it. */
async function provide(name: string, type: "Opaque" | "kubernetes.io/tls", texts: Record<string, string>) {
  const secret: Secret = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { namespace: scene.namespace, name },
    type,
    data: encodeData(texts),
  };
  return world.api.create(resources.secrets, secret);
}

function authority(commonName: string, durationDays = 90) {
  return createAuthority({ commonName, organizationalUnit: "" }, { now: Date.now(), durationDays });
}

async function leaf(signer: { certificate: string; privateKey: string }, usage: "server" | "client") {
  const request = { commonName: usage === "server" ? "any" : "streaming_replica", usage, dnsNames: [] };
  const pair = await createLeaf(signer, request, { now: Date.now(), durationDays: 90 });
  return { "tls.crt": pair.certificate, "tls.key": pair.privateKey };
}

describe("extensions that come as images", () => {
  const extension = (name: string) => ({ name, image: { reference: `example.org/${name}:1` } });

  /** Image and place of each extension, pod by pod. */
  const mounted = async () =>
    (await podsOf("v")).map(({ spec }) => {
      const mounts = spec?.containers[0]?.volumeMounts ?? [];
      return (spec?.volumes ?? []).flatMap(({ name, image }) =>
        image ? [[image.reference, mounts.find((it) => it.name === name)?.mountPath]] : [],
      );
    });

  it("are mounted into every pod, and one that is added has every pod made anew with it", async () => {
    const imageName = "example.org/postgresql:18.1";
    await scene.create("v", { instances: 2, imageName, postgresql: { extensions: [extension("vector")] } });
    await scene.waitHealthy("v", 2);
    const vector = ["example.org/vector:1", "/extensions/vector"];
    expect(await mounted()).toEqual([[vector], [vector]]);
    await scene.patchSpec("v", { postgresql: { extensions: [extension("vector"), extension("postgis")] } });
    const both = [vector, ["example.org/postgis:1", "/extensions/postgis"]];
    await expect.poll(mounted, soon).toEqual([both, both]);
    const cluster = await scene.waitHealthy("v", 2);
    expect(cluster.status?.pgDataImageInfo?.extensions?.map(({ name }) => name)).toEqual(["vector", "postgis"]);
  });
});

describe("certificates that the user provides", () => {
  const names = {
    serverCASecret: "my-server-ca",
    serverTLSSecret: "my-server",
    clientCASecret: "my-client-ca",
    replicationTLSSecret: "my-replication",
  };

  it("are waited for by name, used as they are, and never written", async () => {
    await scene.create("u", { instances: 1, certificates: names });
    const waiting = await scene.waitStatus("u", "the phase", (it) => (it.phase ?? "").startsWith("Unable to create"));
    for (const name of Object.values(names)) expect(waiting.status?.phaseReason).toContain(name);
    await expect.poll(() => eventsOf("u"), soon).toContain("SecretNotFound: Getting secret my-server");
    const server = await authority("server");
    const client = await authority("client");
    const made = [
      await provide("my-server-ca", "Opaque", { "ca.crt": server.certificate }),
      await provide("my-client-ca", "Opaque", { "ca.crt": client.certificate }),
      await provide("my-server", "kubernetes.io/tls", await leaf(server, "server")),
      await provide("my-replication", "kubernetes.io/tls", await leaf(client, "client")),
    ];
    const cluster = await scene.waitHealthy("u", 1);
    expect(cluster.status?.certificates).toMatchObject(names);
    for (const own of ["u-ca", "u-server", "u-replication"]) {
      expect(await scene.find(resources.secrets, own)).toBeUndefined();
    }
    for (const { metadata } of made) {
      const now = await scene.find(resources.secrets, metadata.name ?? "");
      expect(now?.metadata.resourceVersion).toBe(metadata.resourceVersion);
    }
  });

  it("that another authority signed are refused in words, and taken once they fit", async () => {
    const key = { namespace: scene.namespace, name: "my-server" };
    const before = await world.api.get(resources.secrets, key);
    const foreign = encodeData(await leaf(await authority("foreign"), "server"));
    await world.api.patch(resources.secrets, key, { type: "merge", body: { data: foreign } });
    const cluster = await scene.waitStatus("u", "the phase", (it) => (it.phase ?? "").startsWith("Unable to create"));
    expect(cluster.status?.phaseReason).toContain("secret my-server cannot be used");
    expect(await podsOf("u")).toHaveLength(1);
    await world.api.patch(resources.secrets, key, { type: "merge", body: { data: before.data } });
    await scene.waitHealthy("u", 1);
  });

  it("may be an authority alone, which then signs for the cluster, if it can", async () => {
    const signer = await authority("signer", 3);
    await provide("signer", "Opaque", { "ca.crt": signer.certificate });
    await scene.create("s", { instances: 1, certificates: { serverCASecret: "signer", clientCASecret: "signer" } });
    const unable = await scene.waitStatus("s", "the phase", (it) => (it.phaseReason ?? "").includes("no ca.key"));
    expect(unable.status?.phaseReason).toContain("secret signer has no ca.key: add it");
    const key = { namespace: scene.namespace, name: "signer" };
    const data = encodeData({ "ca.key": signer.privateKey });
    await world.api.patch(resources.secrets, key, { type: "merge", body: { data } });
    await scene.waitHealthy("s", 1);
    const made = await scene.find(resources.secrets, "s-server");
    const [certificate] = parseCertificates((made && secretText(made, "tls.crt")) ?? "", "tls.crt");
    expect(certificate.issuer).toContain("signer");
    await expect.poll(() => eventsOf("s"), soon).toContain("SecretIsExpiring: Checking expiring date of secret signer");
  });
});

describe("certificates of the operator's making that come to their end", () => {
  const validity = { now: Date.now(), durationDays: 3 };
  const text = async (name: string, key: string) => {
    const secret = await scene.find(resources.secrets, name);
    return (secret && secretText(secret, key)) ?? "";
  };

  async function replace(name: string, key: string, certificate: string): Promise<void> {
    const body = { data: encodeData({ [key]: certificate }) };
    await world.api.patch(resources.secrets, { namespace: scene.namespace, name }, { type: "merge", body });
  }

  it("are renewed while it runs, with the key that they had, and no pod is made anew", async () => {
    await scene.create("x", { instances: 1 });
    await scene.waitHealthy("x", 1);
    const [pod] = await podsOf("x");
    const signer = { certificate: await text("x-ca", "ca.crt"), privateKey: await text("x-ca", "ca.key") };
    const key = await text("x-server", "tls.key");
    const [before] = parseCertificates(await text("x-server", "tls.crt"), "tls.crt");
    const dnsNames = (before.subjectAltName ?? "").split(", ").map((it) => it.replace("DNS:", ""));
    const ending = renewLeaf(signer, key, { commonName: "x-rw", usage: "server", dnsNames }, validity);
    await replace("x-server", "tls.crt", ending);
    await expect.poll(() => text("x-server", "tls.crt"), soon).not.toBe(ending);
    const [renewed] = parseCertificates(await text("x-server", "tls.crt"), "tls.crt");
    expect(Date.parse(renewed.validTo) - Date.now()).toBeGreaterThan(80 * 86_400_000);
    expect(renewed.subjectAltName).toBe(before.subjectAltName);
    expect(await text("x-server", "tls.key")).toBe(key);

    const endingAuthority = renewAuthority(signer, validity);
    await replace("x-ca", "ca.crt", endingAuthority);
    await expect.poll(() => text("x-ca", "ca.crt"), soon).not.toBe(endingAuthority);
    const [authority] = parseCertificates(await text("x-ca", "ca.crt"), "ca.crt");
    expect(Date.parse(authority.validTo) - Date.now()).toBeGreaterThan(80 * 86_400_000);
    expect(await text("x-ca", "ca.key")).toBe(signer.privateKey);
    expect(renewed.verify(authority.publicKey)).toBe(true);
    const noted = authority.validToDate.toISOString().slice(0, 10);
    await scene.waitStatus(
      "x",
      "the new end",
      (it) => it.certificates?.expirations?.["x-ca"]?.startsWith(noted) ?? false,
    );
    await scene.waitHealthy("x", 1);
    expect((await podsOf("x")).map((it) => it.metadata.uid)).toEqual([pod?.metadata.uid]);
  });
});
